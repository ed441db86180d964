// Describes the columns of a table or a view: their SQL types for a select, and how their values are read.

export interface Column<T = unknown> {
  readonly name: string;
  readonly type: string;
  readonly isNotNull: boolean;
  /** The values that the database allows, if it allows only some. */
  readonly allowed: readonly string[] | undefined;
  /** Reads a value that is not null. */
  readonly decode: (value: unknown) => T;
}

export interface NullableColumn<T> extends Column<T | null> {
  notNull(): Column<T>;
  array(): NullableColumn<T[]>;
}

export type Columns = Readonly<Record<string, Column>>;
export type RowOf<C extends Columns> = { [Field in keyof C]: C[Field] extends Column<infer T> ? T : never };

interface Description<T> {
  name: string;
  type: string;
  decode: (value: unknown) => T;
  allowed?: readonly string[] | undefined;
}

export function column<T>({ name, type, decode, allowed }: Description<T>): NullableColumn<T> {
  const read = { name, type, allowed, decode };
  return {
    ...read,
    isNotNull: false,
    notNull: () => ({ ...read, isNotNull: true }),
    array: () =>
      column({ name, type: `${type}[]`, decode: (value) => (value as unknown[]).map(decode), allowed }),
  };
}

const asIs = <T>(value: unknown) => value as T;

export const uuid = (name: string) => column({ name, type: "uuid", decode: asIs<string> });
export const boolean = (name: string) => column({ name, type: "boolean", decode: asIs<boolean> });
export const integer = (name: string) => column({ name, type: "integer", decode: Number });
export const smallint = (name: string) => column({ name, type: "smallint", decode: Number });
export const bigint = (name: string) => column({ name, type: "bigint", decode: Number });
export const numeric = (name: string) => column({ name, type: "numeric", decode: Number });
export const doublePrecision = (name: string) => column({ name, type: "double precision", decode: Number });
export const json = <T>(name: string) => column({ name, type: "jsonb", decode: asIs<T> });

/** A number that may not fit into a double. */
export const bigintAsText = (name: string) => column({ name, type: "bigint", decode: String });

/** Milliseconds in a column (columns.ts), ISO 8601 in JSON. */
export const time = (name: string) =>
  column({ name, type: "timestamp with time zone", decode: (value) => new Date(value as number | string) });

export const text = <const Value extends string = string>(name: string, allowed?: readonly Value[]) =>
  column({ name, type: "text", decode: asIs<Value>, allowed });
