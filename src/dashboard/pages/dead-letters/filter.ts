// The filter of dead letters. It stands in the URL, each part as a parameter, or in the search line: `type:send_email`.
import type { DeadGroup, DeadLetterFilter, DeadRun } from "../../../core/dead-letters.ts";
import { deadReasons } from "../../../core/job.ts";

const parts = ["type", "reason", "fingerprint", "queue"] as const;
type Part = (typeof parts)[number];
export type Filter = Pick<DeadLetterFilter, Part>;

/** How many groups can be chosen together. Each is a run of its own, which costs an invocation a few statements. */
export const mostGroups = 10;
export type GroupKey = Pick<DeadGroup, "type" | "reason" | "fingerprint">;

export interface DeadSearch {
  filter: Filter;
  /** The groups that are chosen. Undefined: nobody was asked to choose, so the filter counts. */
  chosen: GroupKey[] | undefined;
  /** What could not be understood, as sentences. */
  faults: string[];
}

export function parseDeadSearch(query: URLSearchParams): DeadSearch {
  const values: Partial<Record<Part, string>> = {};
  const faults: string[] = [];
  for (const part of parts) {
    const value = query.get(part);
    if (value) values[part] = value;
  }
  for (const word of (query.get("q") ?? "").split(/\s+/).filter((text) => text !== "")) {
    const [, name = "", value = ""] = /^([a-z]+):(.+)$/.exec(word) ?? [];
    const part = parts.find((known) => known === name);
    if (part) values[part] = value;
    else faults.push(`"${word}" is not understood: write ${parts.map((known) => `${known}:`).join(", ")}.`);
  }
  const reason = deadReasons.find((known) => known === values.reason);
  if (values.reason && !reason)
    faults.push(`"${values.reason}" is no reason: it is one of ${deadReasons.join(", ")}.`);
  const fingerprint = /^[0-9a-f]{16}$/.exec(values.fingerprint ?? "")?.[0];
  if (values.fingerprint && !fingerprint)
    faults.push(`"${values.fingerprint}" is no fingerprint: it has 16 hexadecimal digits.`);
  const chosen =
    query.has("group") || query.has("choose")
      ? query.getAll("group").flatMap((text) => parseGroup(text) ?? [])
      : undefined;
  if (chosen?.length === 0) faults.push("Select a group first: none is selected.");
  if (chosen && chosen.length > mostGroups)
    faults.push(`Choose at most ${mostGroups} groups, not ${chosen.length}.`);
  return { filter: { type: values.type, reason, fingerprint, queue: values.queue }, chosen, faults };
}

/** A group as a field of a form. Only the type may have a dot. */
export function formatGroup({ type, reason, fingerprint }: GroupKey): string {
  return `${reason}.${fingerprint}.${type}`;
}

export function parseGroup(text: string): GroupKey | undefined {
  const [, word, fingerprint, type] = /^([a-z]+)\.([0-9a-f]{16})\.(.+)$/.exec(text) ?? [];
  const reason = deadReasons.find((known) => known === word);
  return reason && fingerprint && type ? { type, reason, fingerprint } : undefined;
}

export function isChosen({ chosen = [] }: DeadSearch, group: GroupKey): boolean {
  return chosen.some((one) => formatGroup(one) === formatGroup(group));
}

/** As the search line has it. */
export function formatFilter(filter: Record<Part, string | null | undefined> | Filter | DeadRun): string {
  return parts.flatMap((part) => (filter[part] ? [`${part}:${filter[part]}`] : [])).join(" ");
}

/** The id of the link that opens the dialog. When the dialog closes, the focus goes back there. */
export function openerId(action: string, { type, reason, fingerprint }: Filter): string {
  return [action, ...(type && reason && fingerprint ? [type, reason, fingerprint] : ["all"])].join("-");
}

/** The page that the dialog goes back to has the filter `list`, and shows groups or jobs. */
export function startUrl(action: string, filter: Filter, list: Filter, view?: "jobs"): string {
  const back = formatFilter(list);
  return deadUrl("/dead-letters/start", filter, { action, ...(back && { back }), ...(view && { view }) });
}

/** The URL of a page with this filter, and nothing else in it. */
export function deadUrl(path: string, filter: Filter, more: Record<string, string> = {}): string {
  const query = new URLSearchParams();
  for (const part of parts) if (filter[part]) query.set(part, filter[part]);
  for (const [name, value] of Object.entries(more)) query.set(name, value);
  const text = query.toString();
  return text === "" ? path : `${path}?${text}`;
}
