// The job types of one deployment, by name, and what it says about its queues.
import { defaultQueuePolicy } from "../core/key-policy.ts";
import type { Registry } from "../queue/ports.ts";
import type { JobDefinition } from "./define.ts";
import type { QueueDefinition } from "./define-queue.ts";
import type { ScheduleDefinition } from "./define-schedule.ts";

export interface JobRegistry extends Registry {
  find(type: string): JobDefinition | undefined;
}

export function createRegistry(
  jobs: readonly JobDefinition[],
  queues: readonly QueueDefinition[] = [],
  schedules: readonly ScheduleDefinition[] | null = null,
): JobRegistry {
  const byType = new Map(jobs.map((job) => [job.type, job]));
  const policies = new Map(queues.map(({ queue, policy }) => [queue, policy]));
  refuseTwice(
    "job type",
    jobs.map(({ type }) => type),
  );
  refuseTwice(
    "queue",
    queues.map(({ queue }) => queue),
  );
  refuseTwice("schedule", schedules?.map(({ name }) => name) ?? []);
  const stray = schedules?.find(({ type }) => !byType.has(type));
  if (stray)
    throw new TypeError(`schedule "${stray.name}": its job "${stray.type}" is not in sluice({ jobs })`);
  return {
    find: (type) => byType.get(type),
    all: () => jobs,
    policyOf: (queue) => policies.get(queue) ?? defaultQueuePolicy,
    stepTypes: new Set(),
    schedules,
  };
}

function refuseTwice(what: string, names: readonly string[]): void {
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new TypeError(`${what} "${twice}" is defined twice`);
}
