// The rule for the name of Sluice's schema. `sluice migrate` and the Worker share it, so that they accept the same names.
// Postgres would cut longer names, and other characters would need quotes.

export const defaultSchema = "sluice";
export const schemaName = /^[a-z_][a-z0-9_]{0,62}$/;
export const schemaNameFault =
  "must be a lower case name of letters, digits and _, with at most 63 characters and no digit first";
