// Columns of schema.ts: their list for a select, and the decoder of the rows that come back.
import type { Columns, RowOf } from "./column.ts";
import { type SQL, sql } from "./sql.ts";
import { type Row, time } from "./statement.ts";

/** The names alone, without the table's: the rows may also come from a function that returns rows of the table. */
export function listColumns(columns: Columns): SQL {
  const parts = Object.values(columns).map(({ name, type }) =>
    type === "timestamp with time zone" ? time(name) : sql.identifier(name),
  );
  return sql.join(parts, ", ");
}

/** Reads the columns of a row, or the fields of the same names in an object of a JSON answer. */
export function decodeColumns<C extends Columns>(columns: C): (row: Row) => RowOf<C> {
  const entries = Object.entries(columns);
  return (row) =>
    Object.fromEntries(
      entries.map(([field, { name, decode }]) => [field, row[name] === null ? null : decode(row[name])]),
    ) as RowOf<C>;
}
