// A statement is a value: what to run, and how to read a row of its answer. Nothing is executed here.
// The schema's name comes from the deployment's settings, so a statement is compiled by whoever runs it.
import { type SQL, sql } from "drizzle-orm";
import { PgDialect } from "drizzle-orm/pg-core";

export type Row = Record<string, unknown>;

export interface Statement<T> {
  readonly name: string;
  /** A write that was committed and whose answer was lost does no harm when it is run again. */
  readonly isRepeatable: boolean;
  readonly build: (schema: SQL) => SQL;
  readonly decode: (row: Row) => T;
}

export interface CompiledStatement {
  text: string;
  values: unknown[];
}

export const defaultSchema = "sluice";

const dialect = new PgDialect();

export function toSql(statement: Statement<unknown>, schema = defaultSchema): SQL {
  return statement.build(sql`${sql.identifier(schema)}`);
}

export function compile(statement: Statement<unknown>, schema = defaultSchema): CompiledStatement {
  const query = dialect.sqlToQuery(toSql(statement, schema));
  return { text: query.sql, values: query.params };
}
