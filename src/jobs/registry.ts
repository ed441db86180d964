// The job types of one deployment, by name, and what it says about its queues.
import { isCanary } from "../core/alarms/alarm.ts";
import { defaultQueuePolicy } from "../core/key-policy.ts";
import type { Registry } from "../queue/ports.ts";
import type { JobDefinition } from "./define.ts";
import type { QueueDefinition } from "./define-queue.ts";
import type { ScheduleDefinition } from "./define-schedule.ts";

export interface JobRegistry extends Registry {
  find(type: string): JobDefinition | undefined;
}

/** A list, or the types by name: the same object can give the client its names. */
export type JobList = readonly JobDefinition[] | Readonly<Record<string, JobDefinition>>;

export function listOf(jobs: JobList): readonly JobDefinition[] {
  if (Array.isArray(jobs)) return jobs;
  const entries = Object.entries(jobs as Readonly<Record<string, JobDefinition>>);
  const stray = entries.find(([name, { type }]) => name !== type);
  if (stray)
    throw new TypeError(`sluice({ jobs }): the name of "${stray[1].type}" is "${stray[0]}" in the list`);
  return entries.map(([, job]) => job);
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
    queues: [
      ...new Set([...policies.keys(), ...jobs.filter((job) => !isCanary(job)).map(({ queue }) => queue)]),
    ],
    policyOf: (queue) => policies.get(queue) ?? defaultQueuePolicy,
    stepTypes: new Set(),
    schedules,
  };
}

function refuseTwice(what: string, names: readonly string[]): void {
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new TypeError(`${what} "${twice}" is defined twice`);
}
