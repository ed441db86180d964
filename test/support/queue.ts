// A Queue for tests: real Postgres, the given job types, a log that is kept.
import type { JobDefinition } from "../../src/jobs/define.ts";
import { createRegistry } from "../../src/jobs/registry.ts";
import type { Database, Queue } from "../../src/queue/ports.ts";

export interface LoggedEvent {
  level: "info" | "warn" | "error";
  event: string;
  fields: Record<string, unknown> | undefined;
}

export function createTestQueue(
  db: Database,
  jobs: readonly JobDefinition[],
): Queue & { events: LoggedEvent[] } {
  const events: LoggedEvent[] = [];
  const logAt = (level: LoggedEvent["level"]) => (event: string, fields?: Record<string, unknown>) => {
    events.push({ level, event, fields });
  };
  return {
    db,
    clock: { nowMs: () => Date.now() },
    random: () => 0.5,
    log: { info: logAt("info"), warn: logAt("warn"), error: logAt("error") },
    registry: createRegistry(jobs),
    env: {},
    events,
  };
}
