// pause and resume a queue or a type. The answer says whether that changed anything. See migrations/functions/pause.sql.
import type { RowOf } from "./column.ts";
import { decodeColumns, listColumns } from "./columns.ts";
import { pause as pauseTable } from "./schema.ts";
import { sql } from "./sql.ts";
import { many, one, type Statement } from "./statement.ts";

export type Pausable = { queue: string } | { type: string };

export type Paused = RowOf<typeof pauseTable>;

export function listPauses(): Statement<Paused[]> {
  return {
    name: "list pauses",
    isRepeatable: true,
    build: (schema) => sql`select ${listColumns(pauseTable)} from ${schema}.pause`,
    decode: many(decodeColumns(pauseTable)),
  };
}

export function pause(actor: string, target: Pausable): Statement<boolean> {
  return changePause("pause", actor, target);
}

export function resume(actor: string, target: Pausable): Statement<boolean> {
  return changePause("resume", actor, target);
}

/** True for a queue that has or had jobs, or is paused. */
export function knowsQueue(name: string): Statement<boolean> {
  return {
    name: "knows queue",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.knows_queue(${name}::text) as known`,
    decode: one((row) => row.known === true),
  };
}

function changePause(verb: "pause" | "resume", actor: string, target: Pausable): Statement<boolean> {
  const [kind, name] = "queue" in target ? ["queue", target.queue] : ["type", target.type];
  return {
    name: verb,
    isRepeatable: true,
    build: (schema) =>
      sql`select ${schema}.${sql.raw(verb)}(${actor}::text, ${kind}::text, ${name}::text) as changed`,
    decode: one((row) => row.changed === true),
  };
}
