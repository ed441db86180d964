// send signal, find signal: the first one of a name and key counts. See migrations/functions/signal.sql.
import type { Json } from "../job.ts";
import { sql } from "./sql.ts";
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

/** Null if nobody has sent the signal yet. */
export function findSignal(name: string, key: string): Statement<{ payload: Json } | null> {
  return {
    name: "find signal",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.signal_of(${name}::text, ${key}::text) as signal`,
    decode: one(({ signal }) => (signal ? { payload: (signal as { payload: Json }).payload ?? null } : null)),
  };
}
