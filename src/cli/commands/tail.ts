// sluice tail: jobs as they end.
import { setTimeout as sleep } from "node:timers/promises";
import type { JobResponse } from "../../contract/jobs.ts";
import type { CommandContext } from "../command.ts";
import type { Commands } from "../command-table.ts";
import { CommandError, usageError } from "../exit.ts";
import { createJobTail } from "../job-tail.ts";
import { between, firstLine, plain } from "../output/words.ts";

const defaultIntervalSeconds = 1;

export const commands: Commands = {
  "": {
    summary: "Show jobs as they end, until Ctrl-C",
    flags: [
      { name: "type", kind: "text", help: "only jobs of this type" },
      { name: "queue", kind: "text", help: "only jobs of this queue" },
      {
        name: "interval",
        kind: "number",
        help: `seconds between two looks; default ${defaultIntervalSeconds}`,
      },
    ],
    details: `With --json one line for each job, as GET /v1/jobs answers.

It looks at the newest ends of each kind and at what is being processed. It can miss a job that was enqueued long before
others which have ended, and that itself ran for less than the interval. With a key of the role viewer or admin it compares what
it shows with the books, and says how many completed jobs it has missed. It never shows a job twice.`,
    examples: [
      "tail",
      "tail --type send_email",
      "tail --json | jq -r 'select(.status == \"dead\") | .error'",
    ],
    run: tail,
  },
};

/** Goes on while Sluice is out of reach, if it was in reach at the start. */
async function tail(context: CommandContext): Promise<void> {
  const { api, out, values, stopped } = context;
  const seconds = values.interval ?? defaultIntervalSeconds;
  if (typeof seconds !== "number" || seconds < 0.1) throw usageError("--interval: must be at least 0.1");
  const filter = { ...(values.type && { type: values.type }), ...(values.queue && { queue: values.queue }) };
  const next = createJobTail(api, filter);
  await next();
  out.note("waiting for jobs to end; Ctrl-C ends this");
  let isLost = false;
  while (!stopped.aborted) {
    await sleep(seconds * 1000, undefined, { signal: stopped }).catch(() => {});
    if (stopped.aborted) return;
    try {
      const { ended, missed } = await next();
      for (const job of ended) show(job, context);
      if (missed > 0) out.note(missedText(missed));
      isLost = false;
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      if (!isLost) out.note(error.message);
      isLost = true;
    }
    await out.flushed();
  }
}

function missedText(missed: number): string {
  const jobs = missed === 1 ? "1 more job has" : `${missed} more jobs have`;
  return `${jobs} completed and cannot be shown: enqueued long before others, and quick; a shorter --interval shows more`;
}

function show(job: JobResponse, { out }: CommandContext): void {
  const cells = [
    job.completed_at ?? job.started_at ?? job.created_at,
    job.status,
    job.type,
    job.job_id,
    between(job.started_at, job.completed_at),
    job.status === "completed" ? "" : firstLine(job.error),
  ];
  if (out.isJson) out.jsonLine(job);
  else
    out.line(
      cells
        .map(plain)
        .join(out.isTerminal ? "  " : "\t")
        .trimEnd(),
    );
}
