// send signal: the first one of a name and key counts. See migrations/functions/signal.sql.
import { sql } from "drizzle-orm";
import type { Json } from "../job.ts";
import { one, type Statement } from "./statement.ts";

export interface NewSignal {
  name: string;
  key: string;
  payload: Json;
}

/** Answers whether it was the first. */
export function sendSignal({ name, key, payload }: NewSignal): Statement<boolean> {
  return {
    name: "send signal",
    isRepeatable: true, // only the answer differs
    build: (schema) => sql`
      select ${schema}.signal(${name}::text, ${key}::text, ${JSON.stringify(payload)}::text::jsonb) as is_first`,
    decode: one((row) => row.is_first === true),
  };
}
