// pause, resume: a queue or a type. The answer says whether that changed anything.
import { sql } from "drizzle-orm";
import type { Statement } from "./statement.ts";

export type Pausable = { queue: string } | { type: string };

export function pause(target: Pausable): Statement<boolean> {
  const [kind, name] = nameOf(target);
  return {
    name: "pause",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.pause(${kind}::text, ${name}::text) as changed`,
    decode: (row) => row.changed as boolean,
  };
}

export function resume(target: Pausable): Statement<boolean> {
  const [kind, name] = nameOf(target);
  return {
    name: "resume",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.resume(${kind}::text, ${name}::text) as changed`,
    decode: (row) => row.changed as boolean,
  };
}

function nameOf(target: Pausable): [kind: string, name: string] {
  return "queue" in target ? ["queue", target.queue] : ["type", target.type];
}
