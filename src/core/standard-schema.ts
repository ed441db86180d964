// The shape of a schema, as Standard Schema (standardschema.dev) defines it. zod, valibot, arktype and others have it. It is
// described here and not imported, so a schema fits whatever version of its library a project has, and however many copies.

export interface StandardSchema<Input = unknown, Output = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    /** Never set: it carries the types. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

type TypesOf<Schema extends StandardSchema> = NonNullable<Schema["~standard"]["types"]>;
/** What may be given to the schema. */
export type InputOf<Schema extends StandardSchema> = TypesOf<Schema>["input"];
/** What the schema makes of it. */
export type ParsedBy<Schema extends StandardSchema> = TypesOf<Schema>["output"];
