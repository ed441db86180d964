// ping: is the database there, and is our schema in it.
import { sql } from "drizzle-orm";
import type { Statement } from "./statement.ts";

export function ping(): Statement<{ migration: string }> {
  return {
    name: "ping",
    isRepeatable: true,
    build: (schema) => sql`select max(name) as migration from ${schema}.migration`,
    decode: (row) => ({ migration: row.migration as string }),
  };
}
