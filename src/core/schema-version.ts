// The version of the schema that this Worker needs, the same number as in migrations/functions/schema-version.sql. Raise both
// when the Worker needs something of the database that the last release's schema lacks.
export const schemaVersion = 2;
