// sluice dead: list, show, replay, discard. A dead letter is replayed by its id, or many by their type and reason.
import type { Operation } from "../../contract/operation.ts";
import { operations } from "../../contract/operations.ts";
import type { Command, CommandContext, Value } from "../command.ts";
import type { Commands } from "../command-table.ts";
import { checkFields, fieldFlags } from "../contract-flags.ts";
import { usageError } from "../exit.ts";
import { deadColumns, showJob } from "../job-view.ts";
import { actionCommand, listCommand, operationCommand } from "../operation-command.ts";
import { plural } from "../output/words.ts";
import { parseRate } from "../rate.ts";

const flagsOf = (operation: Operation, ...fields: string[]) =>
  fieldFlags(operation).filter(({ field = "" }) => fields.includes(field));
/** Without `field`: they belong to two operations, so `run` sends them. */
const ownFlags = [
  ...flagsOf(operations.replayDeadLetters, "type", "reason", "count", "dry_run"),
  ...flagsOf(operations.replayDeadLetter, "payload"),
].map(({ field: _, ...flag }) => flag);

const replay: Command = {
  summary: "Replay a dead letter by its id, or many by their type",
  arguments: ["id?"],
  flags: [
    ...ownFlags,
    { name: "rate", kind: "text", help: "spreads the jobs over time: 100/m, 5/s; default: all at once" },
  ],
  details: `With an id: --payload replaces the payload. Without one: --type says which, the oldest come first, and --dry-run only counts.`,
  examples: [
    "dead replay 0199a1b2-…",
    `dead replay 0199a1b2-… --payload '{"to": "b@example.com"}'`,
    "dead replay --type send_email --dry-run",
    "dead replay --type send_email --reason exhausted --rate 100/m",
  ],
  run: (context) => (context.values.id === undefined ? replayMany(context) : replayOne(context)),
};

async function replayOne({ api, out, values }: CommandContext): Promise<void> {
  const { id, payload, ...others } = values;
  const [other] = Object.keys(others);
  if (other !== undefined)
    throw usageError(`--${other} is for many dead letters; with an id only --payload is allowed`);
  const body = payload === undefined ? undefined : { payload };
  if (body) checkFields(operations.replayDeadLetter, body);
  const job = await api.call("replayDeadLetter", { path: { id }, ...(body && { body }) });
  if (out.isJson) out.json(job);
  else
    out.line(`${job.job_id} is ${job.status} again${api.isOverSql ? "; it starts with the next cron" : ""}`);
}

async function replayMany({ api, out, values }: CommandContext): Promise<void> {
  const { payload, rate, "dry-run": dryRun, ...filter } = values;
  if (payload !== undefined) throw usageError("--payload needs the id of one dead letter");
  if (filter.type === undefined) throw usageError("say which dead letters: an id, or --type");
  const body: Record<string, Value> = {
    ...filter,
    ...(dryRun === true && { dry_run: true }),
    ...(rate !== undefined && { per_minute: parseRate(String(rate)) }),
  };
  checkFields(operations.replayDeadLetters, body);
  const answer = await api.call("replayDeadLetters", { body });
  if (out.isJson) return out.json(answer);
  const jobs = plural(answer.replayed, "dead letter");
  out.line(answer.dry_run ? `${jobs} would be replayed` : `${jobs} replayed`);
}

export const commands: Commands = {
  list: listCommand("listDeadLetters", {
    examples: [
      "dead list",
      "dead list --type send_email --reason exhausted",
      "dead list --all | cut -f 2 | sort | uniq -c",
    ],
    rows: ({ jobs }) => jobs,
    columns: deadColumns,
    empty: "there are no dead letters",
  }),
  show: operationCommand("getDeadLetter", {
    examples: ["dead show 0199a1b2-…", "dead show 0199a1b2-… --json | jq .errors"],
    show: showJob,
  }),
  replay,
  discard: actionCommand("discardDeadLetter", {
    examples: ["dead discard 0199a1b2-…", `dead discard 0199a1b2-… --reason "the customer is gone"`],
    say: (job) => `${job.job_id} is ${job.status}`,
  }),
};
