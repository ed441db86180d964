// What a command prints. Results go to the standard output, everything else to the standard error. On a terminal a table is
// aligned and has a header. In a pipe it is tab-separated, without a header, and nothing is cut.
import type { WriteStream } from "node:tty";
import { plain } from "./words.ts";

export type Column<Row> = readonly [header: string, value: (row: Row) => unknown];

export interface Output {
  readonly isJson: boolean;
  readonly isTerminal: boolean;
  json(value: unknown): void;
  /** One line for each value, for lists without an end. */
  jsonLine(value: unknown): void;
  table<Row>(rows: readonly Row[], columns: readonly Column<Row>[], empty?: string): void;
  /** Names and values, one for each line. Those that are undefined are left out. */
  fields(fields: Readonly<Record<string, unknown>>): void;
  line(text: string): void;
  /** For people: where the answer comes from, what comes next. It goes to the standard error. */
  note(text: string): void;
  /** Only on a terminal: writes over the last progress. */
  progress(text: string): void;
  /** Replaces the screen of a terminal. In a pipe the text comes behind the last one. */
  screen(text: string): void;
  /** Resolves when the reader has taken what was written. */
  flushed(): Promise<void>;
}

const defaultWidth = 100;

export function createOutput(
  streams: Pick<NodeJS.Process, "stdout" | "stderr">,
  { isJson = false } = {},
): Output {
  const stdout = streams.stdout as WriteStream;
  const isTerminal = stdout.isTTY === true;
  const hasColor = isTerminal && !process.env.NO_COLOR;
  const line = (text: string) => void stdout.write(`${text}\n`);
  return {
    isJson,
    isTerminal,
    line,
    json: (value) => line(JSON.stringify(value, null, 2)),
    jsonLine: (value) => line(JSON.stringify(value)),
    table(rows, columns, empty = "nothing found") {
      const cells = rows.map((row) => columns.map(([, value]) => plain(value(row))));
      if (!isTerminal) for (const row of cells) line(row.join("\t"));
      else if (rows.length === 0) line(empty);
      else
        for (const text of align(
          columns.map(([header]) => header),
          cells,
          // Some terminals say 0: they do not know.
          { width: stdout.columns || undefined, hasColor },
        ))
          line(text);
    },
    fields(fields) {
      const given = Object.entries(fields).filter(([, value]) => value !== undefined);
      const width = Math.max(...given.map(([name]) => name.length));
      for (const [name, value] of given)
        line(
          isTerminal ? `${bold(name.padEnd(width), hasColor)}  ${plain(value)}` : `${name}\t${plain(value)}`,
        );
    },
    note: (text) => void streams.stderr.write(`${text}\n`),
    progress: (text) => void streams.stderr.write(`\r\x1b[2K${text}`),
    screen: (text) => void stdout.write(isTerminal ? `\x1b[H\x1b[2J${text}\n` : `${text}\n\n`),
    flushed: () =>
      stdout.writableNeedDrain ? new Promise((resolve) => stdout.once("drain", resolve)) : Promise.resolve(),
  };
}

/** The last column is cut to the width of the terminal. */
export function align(
  headers: readonly string[],
  rows: readonly (readonly string[])[],
  { width = defaultWidth, hasColor = false }: { width?: number | undefined; hasColor?: boolean } = {},
): string[] {
  const widths = headers.map((header, at) =>
    Math.max(header.length, ...rows.map((row) => row[at]?.length ?? 0)),
  );
  const isNumber = headers.map((_, at) => rows.every((row) => /^[\d,.]*$/.test(row[at] ?? "")));
  const toLine = (cells: readonly string[]) =>
    cells
      .map((cell, at) => (isNumber[at] ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)))
      .join("  ")
      .trimEnd();
  const cut = (text: string) => (text.length > width ? `${text.slice(0, Math.max(width - 1, 1))}…` : text);
  return [bold(cut(toLine(headers)), hasColor), ...rows.map((row) => cut(toLine(row)))];
}

function bold(text: string, hasColor: boolean): string {
  return hasColor ? `\x1b[1m${text}\x1b[22m` : text;
}
