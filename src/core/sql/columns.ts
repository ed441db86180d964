// Columns of schema.ts: their list for a select, and the decoder of the rows that come back.
import { type Column, type InferColumnsDataTypes, type SQL, sql } from "drizzle-orm";
import { type Row, time } from "./statement.ts";

type Columns = Readonly<Record<string, Column>>;

/** The names alone, without the table's: the rows may also come from a function that returns rows of the table. */
export function listColumns(columns: Columns): SQL {
  const parts = Object.values(columns).map((column) =>
    column.getSQLType() === "timestamp with time zone" ? time(column.name) : sql.identifier(column.name),
  );
  return sql.join(parts, sql`, `);
}

/** Reads the columns of a row, or the fields of the same names in an object of a JSON answer. */
export function decodeColumns<C extends Columns>(columns: C): (row: Row) => InferColumnsDataTypes<C> {
  const entries = Object.entries(columns);
  return (row) =>
    // What a column maps its value to is its type: that is what drizzle infers it from.
    Object.fromEntries(
      entries.map(([field, column]) => [field, decodeValue(column, row[column.name])]),
    ) as InferColumnsDataTypes<C>;
}

function decodeValue(column: Column, value: unknown): unknown {
  return value === null ? null : column.mapFromDriverValue(value);
}
