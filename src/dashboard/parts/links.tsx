// Links to jobs and lists of jobs, and the chips of a filter.
import { count } from "./numbers.ts";

const hues = 8;

/** An id by its last 8 signs, with an edge whose colour is the same wherever the id is shown. */
function IdLink({ path, id }: { path: string; id: string }) {
  const hue = [...id].reduce((hash, sign) => (hash * 31 + sign.charCodeAt(0)) % 65_521, 7) % hues;
  return (
    <a class={`id h${hue}`} href={`${path}/${id}`} title={id}>
      {id.slice(-8)}
    </a>
  );
}

export function JobId({ id }: { id: string }) {
  return <IdLink path="/jobs" id={id} />;
}

export function FlowId({ id }: { id: string }) {
  return <IdLink path="/flows" id={id} />;
}

/** The list of jobs with a filter. */
export function jobsUrl(filter: Record<string, string | undefined>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filter)) if (value) query.set(name, value);
  return `/jobs?${query}`;
}

export function queueUrl(queue: string): string {
  return `/queues/${encodeURIComponent(queue)}`;
}

interface ChipProps {
  href: string;
  text: string;
  isOn?: boolean;
  /** How many there are. */
  number?: number;
}

export function Chip({ href, text, isOn, number }: ChipProps) {
  return (
    <a class="chip mono" href={href} aria-current={isOn ? "true" : undefined}>
      {text}
      {number === undefined ? null : (
        <>
          {" "}
          <b>{count(number)}</b>
        </>
      )}
    </a>
  );
}
