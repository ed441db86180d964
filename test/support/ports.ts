// Ports for tests: real Postgres, the job types of the test, and a log that the test can read.
import type { DrainBudget } from "../../src/core/policy/drain-budget.ts";
import { findJob } from "../../src/core/sql/index.ts";
import { systemClock } from "../../src/edge/system-clock.ts";
import type { JobDefinition } from "../../src/jobs/define.ts";
import type { QueueDefinition } from "../../src/jobs/define-queue.ts";
import { createRegistry } from "../../src/jobs/registry.ts";
import { createConnections } from "../../src/queue/outgoing/connections.ts";
import type { Database, Ports } from "../../src/queue/ports.ts";

export interface LoggedEvent {
  level: "info" | "warn" | "error";
  event: string;
  fields: Record<string, unknown> | undefined;
}

export interface TestPorts extends Ports {
  events: LoggedEvent[];
}

/** The budget of a cron drain, without limits that a small test could reach. */
export const roomyBudget: DrainBudget = {
  claimForMs: 25_000,
  hardEndMs: 840_000,
  subrequests: 1000,
  inFlight: 200,
  payloadBytes: 4_000_000,
  maxBatch: 100,
};

export function createTestPorts(
  db: Database,
  jobs: readonly JobDefinition[],
  queues: readonly QueueDefinition[] = [],
): TestPorts {
  const events: LoggedEvent[] = [];
  const logAt = (level: LoggedEvent["level"]) => (event: string, fields?: Record<string, unknown>) => {
    events.push({ level, event, fields });
  };
  return {
    db,
    clock: systemClock,
    random: () => 0.5,
    log: { info: logAt("info"), warn: logAt("warn"), error: logAt("error") },
    sender: { send: () => Promise.reject(new Error("this test sends nothing")) },
    connections: createConnections(),
    registry: createRegistry(jobs, queues),
    env: {},
    wakeIn: () => {},
    hasClock: true,
    events,
  };
}

export async function lookAt(db: Database, id: string) {
  const job = await db.run(findJob(id));
  if (!job) throw new Error(`there is no job ${id}`);
  return job;
}
