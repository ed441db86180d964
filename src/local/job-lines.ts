// Shows a line for each job that ends or fails, from the Worker's log. A burst of jobs is summed up.
import { stripVTControlCharacters } from "node:util";

interface Ended {
  job_id: string;
  type: string;
  /** Pending: the attempt failed, and the job will be tried again. Null: its lease was lost. */
  status: string | null;
  ms?: number;
  message?: string;
  attempt?: number;
  max_attempts?: number;
}

const windowMs = 1_000;
/** In each window. */
const maxLines = 10;

/** Answers whether the line was about jobs. Then it has been shown, or counted. */
export function createJobLines(show: (line: string) => void): (line: string) => boolean {
  let shown = 0;
  let more = new Map<string, number>();
  let isOpen = false;

  const endWindow = () => {
    isOpen = false;
    shown = 0;
    if (more.size > 0) show(`… and more: ${[...more].map(([word, jobs]) => `${jobs} ${word}`).join(", ")}`);
    more = new Map();
  };
  const add = (job: Ended) => {
    if (!isOpen) setTimeout(endWindow, windowMs).unref();
    isOpen = true;
    const word = job.status === "pending" ? "failed and retried" : (job.status ?? "lost");
    if (++shown <= maxLines) show(lineOf(job, word));
    else more.set(word, (more.get(word) ?? 0) + 1);
  };

  return (line) => {
    const jobs = jobsIn(line);
    for (const job of jobs ?? []) add(job);
    return jobs !== undefined;
  };
}

function lineOf({ type, job_id, ms, message, attempt, max_attempts }: Ended, word: string): string {
  const tries = attempt === undefined ? "" : ` (attempt ${attempt} of ${max_attempts})`;
  const duration = ms === undefined ? "" : `, ${Math.round(ms)} ms`;
  const error = message === undefined ? "" : `: ${firstLine(message)}`;
  return `${type} ${job_id} ${word}${tries}${duration}${error}`;
}

/** Without what could move the cursor of a terminal. */
function firstLine(text: string): string {
  return stripVTControlCharacters(text.split("\n", 1)[0] ?? "").replace(/\p{Cc}/gu, " ");
}

/** wrangler puts a word before a warning and an error. */
function jobsIn(line: string): Ended[] | undefined {
  const [json] = /\{"event":"(?:jobs ended|attempt failed)",.*\}$/.exec(line) ?? [];
  if (json === undefined) return undefined;
  const event = JSON.parse(json) as Ended & { event: string; jobs?: Ended[] };
  return event.event === "jobs ended" ? (event.jobs ?? []) : event.type.startsWith("sluice.") ? [] : [event];
}
