// The job types of one deployment, by name.
import type { Registry } from "../queue/ports.ts";
import type { JobDefinition } from "./define.ts";

export interface JobRegistry extends Registry {
  find(type: string): JobDefinition | undefined;
}

export function createRegistry(jobs: readonly JobDefinition[]): JobRegistry {
  const byType = new Map(jobs.map((job) => [job.type, job]));
  if (byType.size < jobs.length) {
    const twice = jobs.find((job, index) => jobs.findIndex((other) => other.type === job.type) !== index);
    throw new TypeError(`job type "${twice?.type}" is defined twice`);
  }
  return { find: (type) => byType.get(type), all: () => jobs };
}
