// pause, resume: a queue or a type. The answer says whether that changed anything. What a caller of the API does is
// audited too. See migrations/functions/pause.sql and audit.sql.
import { sql } from "drizzle-orm";
import { one, type Statement } from "./statement.ts";

export type Pausable = { queue: string } | { type: string };

export function pause(target: Pausable): Statement<boolean> {
  const [kind, name] = nameOf(target);
  return {
    name: "pause",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.pause(${kind}::text, ${name}::text) as changed`,
    decode: one((row) => row.changed as boolean),
  };
}

export function resume(target: Pausable): Statement<boolean> {
  const [kind, name] = nameOf(target);
  return {
    name: "resume",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.resume(${kind}::text, ${name}::text) as changed`,
    decode: one((row) => row.changed as boolean),
  };
}

/** Has it, or had it, jobs; or is it paused? */
export function knowsQueue(name: string): Statement<boolean> {
  return {
    name: "knows queue",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.knows_queue(${name}::text) as known`,
    decode: one((row) => row.known as boolean),
  };
}

export function pauseAs(actor: string, target: Pausable): Statement<boolean> {
  const [kind, name] = nameOf(target);
  return {
    name: "pause as",
    isRepeatable: true,
    build: (schema) =>
      sql`select ${schema}.pause_as(${actor}::text, ${kind}::text, ${name}::text) as changed`,
    decode: one((row) => row.changed as boolean),
  };
}

export function resumeAs(actor: string, target: Pausable): Statement<boolean> {
  const [kind, name] = nameOf(target);
  return {
    name: "resume as",
    isRepeatable: true,
    build: (schema) =>
      sql`select ${schema}.resume_as(${actor}::text, ${kind}::text, ${name}::text) as changed`,
    decode: one((row) => row.changed as boolean),
  };
}

function nameOf(target: Pausable): [kind: string, name: string] {
  return "queue" in target ? ["queue", target.queue] : ["type", target.type];
}
