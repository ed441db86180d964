// The search line of the list of jobs: `type:send_email status:dead since:2h`. Each part is also a parameter of the URL, which is
// how other pages link here.
import { jobStatuses } from "../core/job.ts";
import type { JobFilter } from "../core/job-search.ts";

export const qualifiers = ["type", "status", "queue", "tag", "key", "fair", "since", "until"] as const;
type Qualifier = (typeof qualifiers)[number];

export interface JobSearch {
  /** As they were written. */
  parts: { [Name in Qualifier]?: string | undefined };
  filter: Omit<JobFilter, "limit">;
  /** What could not be understood, as sentences. */
  faults: string[];
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** A value with a space is written as a string of JSON: `key:"two words"`. */
const words = /[a-z]+:"(?:[^"\\]|\\.)*"(?!\S)|\S+/g;
const age = /^(\d{1,6})(s|m|h|d)$/;
const seconds = { s: 1, m: 60, h: 3600, d: 86_400 };

export function parseSearch(query: URLSearchParams, now: Date): JobSearch {
  const { parts, faults } = readParts(query);
  const { type, queue, tag, key: partitionKey, fair: fairKey } = parts;
  const status = jobStatuses.find((known) => known === parts.status);
  if (parts.status && !status)
    faults.push(`"${parts.status}" is no status: it is one of ${jobStatuses.join(", ")}.`);
  const timeOf = (text: string | undefined) => {
    const at = text === undefined ? undefined : parseTime(text, now);
    if (text && !at) faults.push(`"${text}" is no time: write 30m, 2h, 3d or ${now.toISOString()}.`);
    return at;
  };
  const [since, until] = [timeOf(parts.since), timeOf(parts.until)];
  const types = type ? [type] : null;
  const before = beforeOf(query);
  return {
    parts,
    filter: { types, status, queue, tag, partitionKey, fairKey, since, until, before },
    faults,
  };
}

function readParts(query: URLSearchParams): Pick<JobSearch, "parts" | "faults"> {
  const parts: JobSearch["parts"] = {};
  const faults: string[] = [];
  for (const name of qualifiers) {
    const value = query.get(name);
    if (value) parts[name] = value;
  }
  for (const word of (query.get("q") ?? "").match(words) ?? []) {
    const [, name = "", value = ""] = /^([a-z]+):(.+)$/s.exec(word) ?? [];
    if (isQualifier(name)) parts[name] = unquoted(value);
    else
      faults.push(`"${word}" is not understood: write ${qualifiers.map((known) => `${known}:`).join(", ")}.`);
  }
  return { parts, faults };
}

function unquoted(value: string): string {
  try {
    const text: unknown = value.startsWith('"') ? JSON.parse(value) : value;
    return typeof text === "string" ? text : value;
  } catch {
    return value;
  }
}

/** "2h" is two hours ago. Otherwise it is a time as ISO 8601 writes it, in UTC unless it says otherwise. */
function parseTime(text: string, now: Date): Date | undefined {
  const [, number, unit] = age.exec(text) ?? [];
  if (unit) return new Date(now.getTime() - Number(number) * seconds[unit as keyof typeof seconds] * 1000);
  if (!/^\d{4}-\d\d-\d\d/.test(text)) return undefined;
  const at = new Date(/T[\d:.]+$/.test(text) ? `${text}Z` : text);
  return Number.isNaN(at.getTime()) ? undefined : at;
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

export function formatSearch({ parts }: Pick<JobSearch, "parts">): string {
  return qualifiers
    .flatMap((name) => {
      const value = parts[name];
      return value ? [`${name}:${/[\s"]/.test(value) ? JSON.stringify(value) : value}`] : [];
    })
    .join(" ");
}
