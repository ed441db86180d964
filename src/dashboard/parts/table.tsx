// A table as every page has it: real headings, numbers at the right, one wide column, and a group that can be scrolled.
import type { Child } from "hono/jsx";
import { count } from "./numbers.ts";

export interface Column<Row> {
  title: Child;
  /** The heading is for screen readers only. */
  isHidden?: boolean;
  /** Of the design: `n` (number), `wide`, `two-line`, `hide-m`, `hide-s`, `nw`. */
  class?: string;
  cell(row: Row): Child;
}

interface TableProps<Row> {
  /** The name of the group for screen readers. */
  name: string;
  /** Those that several tables share may ask for less than a whole row. */
  columns: readonly Column<NoInfer<Row>>[];
  rows: readonly Row[];
  /** No column names the row. */
  isNameless?: boolean;
  foot?: Child;
}

/** The first column names the row, unless it says otherwise. */
export function Table<Row>({ name, columns, rows, isNameless, foot }: TableProps<Row>) {
  const first = isNameless ? undefined : columns[0];
  const others = first ? columns.slice(1) : columns;
  return (
    <div class="scroll" role="group" aria-label={name} tabindex={0}>
      <table>
        <thead>
          <tr>
            {columns.map(({ title, isHidden, class: kind }) => (
              <th scope="col" class={kind?.replace("two-line", "wide")}>
                {isHidden ? <span class="sr">{title}</span> : title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              {first ? (
                <th scope="row" class={first.class}>
                  {first.cell(row)}
                </th>
              ) : null}
              {others.map(({ class: kind, cell }) => (
                <td class={kind}>{cell(row)}</td>
              ))}
            </tr>
          ))}
        </tbody>
        {foot}
      </table>
    </div>
  );
}

/** A zero is muted. */
export function Count({ value }: { value: number }) {
  return value === 0 ? <span class="zero">0</span> : <span>{count(value)}</span>;
}

/** For a value that is not there: "none", or "–" where there cannot be one. */
export function None({ text = "none" }: { text?: string }) {
  return <span class="zero">{text}</span>;
}
