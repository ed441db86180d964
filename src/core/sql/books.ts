// books: the totals of each queue, type and priority. See migrations/functions/books.sql.
import type { RowOf } from "./column.ts";
import { decodeColumns, listColumns } from "./columns.ts";
import { books as booksView } from "./schema.ts";
import { sql } from "./sql.ts";
import { many, type Statement } from "./statement.ts";

export type Books = RowOf<typeof booksView>;

export function books(): Statement<Books[]> {
  return {
    name: "books",
    isRepeatable: true,
    build: (schema) => sql`select ${listColumns(booksView)} from ${schema}.books`,
    decode: many(decodeColumns(booksView)),
  };
}

/** The number of waiting jobs of each queue, due or not. It comes from the books, so no jobs are counted. */
export function depths(): Statement<Pick<Books, "queue" | "pending">[]> {
  const { queue, pending } = booksView;
  return {
    name: "depths",
    isRepeatable: true,
    build: (schema) => sql`select queue, sum(pending) as pending from ${schema}.books group by queue`,
    decode: many(decodeColumns({ queue, pending })),
  };
}
