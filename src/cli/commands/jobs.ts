// sluice jobs: list, get, cancel, resolve, wait.
import { setTimeout as sleep } from "node:timers/promises";
import type { JobResponse } from "../../contract/jobs.ts";
import type { Command, CommandContext } from "../command.ts";
import type { Commands } from "../command-table.ts";
import { CommandError, exitCodes, usageError } from "../exit.ts";
import { jobColumns, showJob } from "../job-view.ts";
import { actionCommand, listCommand, operationCommand } from "../operation-command.ts";

const pollMs = 500;
const maxTimeoutSeconds = 86_400;

const wait: Command = {
  summary: "Wait until a job has ended",
  operation: "getJob",
  flags: [{ name: "timeout", kind: "number", help: "seconds; default 60" }],
  details: `A job that continues with another one (a chain) has ended when the last one has. Exits with 0 if it is completed, and
with 1 if it is dead, cancelled or discarded, or has not ended in time.`,
  examples: ["jobs wait 0199a1b2-…", "jobs wait 0199a1b2-… --timeout 600 --json"],
  async run(context) {
    const { out } = context;
    const job = await untilEnded(context);
    if (out.isJson) out.json(job);
    else showJob(job, out);
    if (job.status === "completed") return;
    const reason = job.error ? `: ${job.error.split("\n", 1)[0]}` : "";
    throw new CommandError(`job ${job.job_id} is ${job.status}${reason}`);
  },
};

async function untilEnded(context: CommandContext): Promise<JobResponse> {
  const { out, values } = context;
  const seconds = typeof values.timeout === "number" ? values.timeout : 60;
  if (!(seconds >= 0 && seconds <= maxTimeoutSeconds))
    throw usageError(`--timeout: must be 0 to ${maxTimeoutSeconds} seconds`);
  const giveUpMs = Date.now() + seconds * 1000;
  let status = "";
  for (;;) {
    const job = await lastOfChain(context, String(values.id));
    if (["completed", "dead", "discarded", "cancelled"].includes(job.status)) return job;
    if (out.isTerminal && job.status !== status) out.note(`${job.type} is ${job.status}`);
    status = job.status;
    if (Date.now() >= giveUpMs)
      throw new CommandError(`job ${job.job_id} is still ${job.status} after ${seconds} s`, exitCodes.failed);
    await sleep(Math.min(pollMs, Math.max(giveUpMs - Date.now(), 0)));
  }
}

async function lastOfChain({ api }: CommandContext, id: string): Promise<JobResponse> {
  const job = await api.call("getJob", { path: { id } });
  if (job.status !== "completed" || !job.chain) return job;
  const chain = await api.call("getChain", { path: { id } });
  return chain.jobs.at(-1) ?? job;
}

export const commands: Commands = {
  list: listCommand("listJobs", {
    examples: [
      "jobs list --status dead --type send_email",
      "jobs list --queue orders --tag night --limit 100",
      "jobs list --status completed --all --json | jq -r .job_id",
    ],
    rows: ({ jobs }) => jobs,
    columns: jobColumns,
    empty: "no such jobs",
  }),
  get: operationCommand("getJob", {
    details: "Says also why a job waits.",
    examples: ["jobs get 0199a1b2-…", "jobs get 0199a1b2-… --json | jq .output"],
    show: showJob,
  }),
  cancel: actionCommand("cancelJob", {
    details:
      "With --running a job that is being processed is asked to stop. It ends as cancelled unless it completes first.",
    examples: ["jobs cancel 0199a1b2-…", "jobs cancel 0199a1b2-… --running"],
    say: (job) =>
      "cancel_requested" in job ? `${job.job_id} is asked to stop` : `${job.job_id} is ${job.status}`,
  }),
  resolve: actionCommand("resolveJob", {
    details: `--output is JSON, "@file" or "-".`,
    examples: [`jobs resolve 0199a1b2-… --output '{"approved": true}'`],
    say: (job) => `${job.job_id} is ${job.status}`,
  }),
  wait,
};
