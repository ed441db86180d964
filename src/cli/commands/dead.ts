// sluice dead: list, groups, show, replay, discard, and the runs that replay or discard many.
import { operations } from "../../contract/operations.ts";
import type { Command, CommandContext, Value } from "../command.ts";
import type { Commands } from "../command-table.ts";
import { checkFields, fieldFlags } from "../contract-flags.ts";
import { followRun, runColumns, showRun, showRunFields } from "../dead-run.ts";
import { usageError } from "../exit.ts";
import { deadColumns, showJob } from "../job-view.ts";
import { actionCommand, listCommand, operationCommand, startWords } from "../operation-command.ts";
import { count, firstLine, plural } from "../output/words.ts";
import { parseRate } from "../rate.ts";

/** The filter of a run. Its flags have no `field`, because an id calls another operation: `run` sends them. */
const filter = [
  "type",
  "reason",
  "fingerprint",
  "queue",
  "until",
  "count",
  "payload_patch",
  "note",
  "dry_run",
];
const runFlags = fieldFlags(operations.startDeadRun)
  .filter(({ field = "" }) => filter.includes(field))
  .map(({ field: _, ...flag }) => flag);
const manyFlags = [
  ...runFlags,
  { name: "rate", kind: "text", help: "jobs over time: 100/m, 5/s, 2000/h; default: as fast as it goes" },
  { name: "all", kind: "boolean", help: "all dead letters, if no other flag says which" },
  { name: "detach", kind: "boolean", help: "do not wait for the end of the run" },
] as const;
const manyDetails = `Without an id it starts a run over all dead letters that match, oldest deaths first, and shows its progress. Ctrl-C stops
showing it, not the run: sluice dead stop does. --dry-run only counts.`;

const replay: Command = {
  summary: "Replay a dead letter by its id, or all that match",
  arguments: ["id?"],
  flags: [{ name: "payload", kind: "json", help: "with an id: the new payload" }, ...manyFlags],
  details: manyDetails,
  examples: [
    "dead replay 0199a1b2-…",
    `dead replay 0199a1b2-… --payload '{"to": "b@example.com"}'`,
    "dead replay --type send_email --dry-run",
    "dead replay --type send_email --fingerprint 0123456789abcdef --rate 100/m",
  ],
  run: (context) => (context.values.id === undefined ? runMany("replay", context) : replayOne(context)),
};

const discard: Command = {
  summary: "Discard a dead letter by its id, or all that match",
  arguments: ["id?"],
  flags: manyFlags.filter(({ name }) => name !== "payload-patch"),
  details: `${manyDetails} With an id, --note is the reason for the audit.`,
  examples: [
    `dead discard 0199a1b2-… --note "the customer is gone"`,
    "dead discard --type import --reason expired --until 2026-11-01T00:00:00Z",
  ],
  run: (context) => (context.values.id === undefined ? runMany("discard", context) : discardOne(context)),
};

async function replayOne(context: CommandContext): Promise<void> {
  const { api, out, values } = context;
  const { id, payload, ...others } = values;
  refuseFilter(others);
  const body = payload === undefined ? undefined : { payload };
  if (body) checkFields(operations.replayDeadLetter, body);
  const job = await api.call("replayDeadLetter", { path: { id }, ...(body && { body }) });
  if (out.isJson) out.json(job);
  else out.line(`${job.job_id} is ${job.status} again${startWords(context)}`);
}

async function discardOne({ api, out, values }: CommandContext): Promise<void> {
  const { id, note, ...others } = values;
  refuseFilter(others);
  const body = note === undefined ? undefined : { reason: note };
  const job = await api.call("discardDeadLetter", { path: { id }, ...(body && { body }) });
  if (out.isJson) out.json(job);
  else out.line(`${job.job_id} is ${job.status}`);
}

function refuseFilter(flags: Readonly<Record<string, Value>>): void {
  const [other] = Object.keys(flags);
  if (other !== undefined) throw usageError(`--${other} is for many dead letters; an id names one`);
}

async function runMany(action: "replay" | "discard", context: CommandContext): Promise<void> {
  const { api, out, values } = context;
  const { payload, rate, all, detach, ...flags } = values;
  if (payload !== undefined)
    throw usageError("--payload needs the id of one dead letter; --payload-patch is for many");
  const fields = Object.fromEntries(
    Object.entries(flags).map(([name, value]) => [name.replaceAll("-", "_"), value]),
  );
  const { note: _, dry_run: __, count: ___, payload_patch: ____, ...which } = fields;
  if (Object.keys(which).length === 0 && !all)
    throw usageError(
      "say which dead letters: an id, --type, --reason, --fingerprint, --queue, --until, or --all",
    );
  const body: Record<string, Value> = {
    action,
    ...fields,
    ...(rate !== undefined && { per_minute: parseRate(String(rate)) }),
  };
  checkFields(operations.startDeadRun, body);
  const answer = await api.call("startDeadRun", { body });
  if ("run_id" in answer)
    return detach || api.isOverSql ? showRun(answer, context) : followRun(answer, context);
  if (out.isJson) out.json(answer);
  else out.line(`${plural(answer.matched, "dead letter")} would be ${action}ed`);
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
  groups: listCommand("listDeadGroups", {
    examples: ["dead groups", "dead groups --type send_email --json | jq '.groups[].fingerprint'"],
    rows: ({ groups }) => groups,
    columns: [
      ["COUNT", (group) => count(group.count)],
      ["TYPE", ({ type }) => type],
      ["REASON", ({ reason }) => reason],
      ["FINGERPRINT", ({ fingerprint }) => fingerprint],
      ["LAST", (group) => group.last_at],
      ["NEWEST JOB", (group) => group.newest_job_id],
      ["ERROR", ({ pattern, error }) => pattern ?? firstLine(error)],
    ],
    empty: "there are no dead letters",
  }),
  show: operationCommand("getDeadLetter", {
    examples: ["dead show 0199a1b2-…", "dead show 0199a1b2-… --json | jq .errors"],
    show: showJob,
  }),
  replay,
  discard,
  runs: listCommand("listDeadRuns", {
    examples: ["dead runs"],
    rows: ({ runs }) => runs,
    columns: runColumns,
    empty: "there were no runs",
  }),
  run: operationCommand("getDeadRun", {
    examples: ["dead run 7"],
    show: showRunFields,
  }),
  stop: actionCommand("stopDeadRun", {
    examples: ["dead stop 7"],
    say: ({ run_id, state, done }) => `run ${run_id} is ${state} after ${plural(done, "job")}`,
  }),
};
