// A statement is a value: what to run, and how to read its answer. Nothing is executed here.
// The schema's name comes from the deployment's settings, so the database adapter compiles the statement.
import { defaultSchema } from "../schema-name.ts";
import { fillPlaceholders, type SQL, sql, textOf } from "./sql.ts";

export type Row = Record<string, unknown>;

export interface Statement<T> {
  readonly name: string;
  /** True if a second run does no harm after the first was committed and its answer was lost. */
  readonly isRepeatable: boolean;
  /** A select. */
  readonly build: (schema: SQL) => SQL;
  /** True if a cache before the database may answer. Only the statement that looks for such a cache may say so. */
  readonly mayBeCached?: true;
  /** The values of placeholders, if `build` is the same for every call. Then its text is compiled only once. */
  readonly values?: Record<string, unknown>;
  readonly decode: (rows: readonly Row[]) => T;
}

export interface CompiledStatement {
  text: string;
  values: unknown[];
}

/** For a statement that always answers with one row. */
export function one<T>(decode: (row: Row) => T): Statement<T>["decode"] {
  return ([row]) => {
    if (!row) throw new Error("the statement answered with no row");
    return decode(row);
  };
}

/** For a statement that answers with one row, or with none where there is nothing to find. */
export function optional<T>(decode: (row: Row) => T): Statement<T | undefined>["decode"] {
  return ([row]) => row && decode(row);
}

/** For a statement that answers with any number of rows. */
export function many<T>(decode: (row: Row) => T): Statement<T[]>["decode"] {
  return (rows) => rows.map(decode);
}

/**
 * Hyperdrive answers a select from its cache unless its text calls a built-in that Postgres calls stable or volatile. It
 * does not know that `select sluice.claim(…)` writes. Postgres drops a CTE that nobody reads, so this costs nothing.
 */
const uncached = "with uncached as (select now())";

export function compile(statement: Statement<unknown>, schema = defaultSchema): CompiledStatement {
  if (!statement.values) return compileText(statement, schema);
  const texts = compiledTexts.get(statement.build) ?? new Map<string, CompiledStatement>();
  compiledTexts.set(statement.build, texts);
  const { text, values } = texts.get(schema) ?? compileText(statement, schema);
  texts.set(schema, { text, values });
  return { text, values: fillPlaceholders(values, statement.values) };
}

/** Compiled texts by schema. Compiling takes a fifth of the client's time for a call with one job. */
const compiledTexts = new WeakMap<Statement<unknown>["build"], Map<string, CompiledStatement>>();

function compileText(statement: Statement<unknown>, schema: string): CompiledStatement {
  const select = statement.build(sql.identifier(schema));
  return textOf(statement.mayBeCached ? select : sql`${sql.raw(uncached)} ${select}`);
}

/**
 * Selects a time as milliseconds since 1970, because the text of a timestamptz depends on the role's DateStyle. Read it with
 * `timeOf`.
 */
export function time(column: string): SQL {
  return sql.raw(`(extract(epoch from ${column}) * 1000)::float8 as ${column}`);
}

export function timeOf(value: unknown): Date {
  return new Date(Number(value));
}

export function timeOrNull(value: unknown): Date | null {
  return value === null || value === undefined ? null : timeOf(value);
}
