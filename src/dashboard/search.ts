// The search line of the list of jobs: `type:send_email status:dead`. Each part is also a parameter of the URL, which is how
// other pages link here.
import { type JobStatus, jobStatuses } from "../core/job.ts";
import type { JobFilter } from "../core/job-search.ts";

export interface JobSearch {
  filter: Omit<JobFilter, "limit">;
  /** What could not be understood, as sentences. */
  faults: string[];
}

const qualifiers = ["type", "status", "queue", "tag"] as const;
type Qualifier = (typeof qualifiers)[number];
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export function parseSearch(query: URLSearchParams): JobSearch {
  const parts: Partial<Record<Qualifier, string>> = {};
  const faults: string[] = [];
  for (const name of qualifiers) {
    const value = query.get(name);
    if (value) parts[name] = value;
  }
  for (const word of (query.get("q") ?? "").split(/\s+/).filter((text) => text !== "")) {
    const [, name = "", value = ""] = /^([a-z]+):(.+)$/.exec(word) ?? [];
    if (isQualifier(name)) parts[name] = value;
    else
      faults.push(`"${word}" is not understood: write ${qualifiers.map((known) => `${known}:`).join(", ")}.`);
  }
  const { type, queue, tag } = parts;
  const status = jobStatuses.find((known) => known === parts.status);
  if (parts.status && !status)
    faults.push(`"${parts.status}" is no status: it is one of ${jobStatuses.join(", ")}.`);
  return { filter: { types: type ? [type] : null, status, queue, tag, before: beforeOf(query) }, faults };
}

/** A cursor that is no id is the first page. */
function beforeOf(query: URLSearchParams): string | undefined {
  const before = query.get("before") ?? "";
  return isUuid(before) ? before : undefined;
}

export function isUuid(text: string): boolean {
  return uuid.test(text);
}

function isQualifier(name: string): name is Qualifier {
  return (qualifiers as readonly string[]).includes(name);
}

export function formatSearch({ filter }: JobSearch): string {
  const values: Record<Qualifier, string | undefined> = {
    type: filter.types?.[0],
    status: filter.status satisfies JobStatus | undefined,
    queue: filter.queue,
    tag: filter.tag,
  };
  return qualifiers.flatMap((name) => (values[name] ? [`${name}:${values[name]}`] : [])).join(" ");
}
