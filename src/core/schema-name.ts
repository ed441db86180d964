// The name of the schema that holds Sluice: one rule for `sluice migrate` and the Worker, so that neither takes a name
// that the other refuses. Longer names would be cut by Postgres, and others need quotes in every statement that is typed.

export const defaultSchema = "sluice";
export const schemaName = /^[a-z_][a-z0-9_]{0,62}$/;
export const schemaNameFault = "is not a plain lower case schema name";
