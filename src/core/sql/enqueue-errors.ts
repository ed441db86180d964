// record enqueue errors. See migrations/functions/enqueue-errors.sql.
import { sql } from "./sql.ts";
import type { Statement } from "./statement.ts";

export function recordEnqueueErrors(errors: number): Statement<null> {
  return {
    name: "record enqueue errors",
    isRepeatable: false, // the errors would be counted twice
    build: (schema) => sql`select ${schema}.record_enqueue_errors(${errors}::int)`,
    decode: () => null,
  };
}
