// sluice status: all queues on one screen, once or again and again.
import { setTimeout as sleep } from "node:timers/promises";
import type { Answer } from "../api.ts";
import type { CommandContext } from "../command.ts";
import type { Commands } from "../command-table.ts";
import { CommandError, usageError } from "../exit.ts";
import { align } from "../output/output.ts";
import { age, ago, count, plain } from "../output/words.ts";

interface Status {
  health: Answer<"getHealth">;
  stats: Answer<"getStats">;
  queues: Answer<"listQueues">["queues"];
  alarms: Answer<"listAlarms">["alarms"];
}

const defaultIntervalSeconds = 2;
const shownRounds = ["drain", "nudge", "reap", "watch"];

export const commands: Commands = {
  "": {
    summary: "Show the state of all queues on one screen",
    flags: [
      { name: "watch", kind: "boolean", help: "show it again and again until Ctrl-C" },
      {
        name: "interval",
        kind: "number",
        help: `seconds between two looks; default ${defaultIntervalSeconds}`,
      },
    ],
    details:
      "With --json: the answers about health, stats, queues and alarms as one object; with --watch one line for each look.",
    examples: ["status", "status --watch", "status --json | jq .stats.totals", "status --database"],
    async run(context) {
      const { values, out } = context;
      const seconds = values.interval ?? defaultIntervalSeconds;
      if (typeof seconds !== "number" || seconds < 0.1) throw usageError("--interval: must be at least 0.1");
      if (values.watch) return watch(context, seconds * 1000);
      const status = await readStatus(context);
      if (out.isJson) out.json(status);
      else out.line(screenOf(status, context).join("\n"));
    },
  },
};

/** Goes on while Sluice is out of reach, and says so. */
async function watch(context: CommandContext, intervalMs: number): Promise<void> {
  const { out, stopped } = context;
  let lost: { sinceMs: number } | undefined;
  while (!stopped.aborted) {
    try {
      const status = await readStatus(context);
      lost = undefined;
      if (out.isJson) out.jsonLine(status);
      else out.screen(screenOf(status, context).join("\n"));
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      lost ??= { sinceMs: Date.now() };
      const words = `${error.message} (for ${age((Date.now() - lost.sinceMs) / 1000)})`;
      if (out.isTerminal) out.screen(words);
      else out.note(words);
    }
    await sleep(intervalMs, undefined, { signal: stopped }).catch(() => {});
  }
}

async function readStatus({ api }: CommandContext): Promise<Status> {
  const [health, stats, { queues }, { alarms }] = await Promise.all([
    api.call("getHealth"),
    api.call("getStats"),
    api.call("listQueues"),
    api.call("listAlarms"),
  ]);
  return { health, stats, queues, alarms };
}

function screenOf({ health, stats, queues, alarms }: Status, { api, out }: CommandContext): string[] {
  const { totals } = stats;
  const firing = alarms.filter(({ state }) => state === "firing");
  const hour = sumOf(stats.minutes);
  return [
    `Sluice at ${api.words}: ${healthWords(health)}`,
    "",
    [
      `${count(totals.pending)} pending (${count(totals.scheduled)} of them later)`,
      ...(totals.blocked > 0 ? [`${count(totals.blocked)} blocked`] : []),
      `${count(totals.leased)} processing`,
      `${count(totals.dead)} dead`,
      `oldest due job: ${age(stats.oldest_due_seconds)}`,
    ].join("   "),
    `last hour: ${count(hour.enqueued)} enqueued, ${count(hour.completed)} completed, ${count(hour.failed)} failed attempts`,
    "",
    ...tableOf(queues, out.isTerminal),
    "",
    ...(firing.length === 0
      ? ["no alarm fires"]
      : firing.map(({ alarm, summary }) => `ALARM ${alarm}: ${plain(summary)}`)),
    `rounds: ${roundsOf(stats) || "none yet"}`,
  ];
}

function healthWords({ status, checks }: Answer<"getHealth">): string {
  const { clock, ...words } = checks;
  const wrong = Object.entries(words).filter(
    ([, word]) => !["ok", "starting", "asleep"].includes(String(word)),
  );
  const sleep = clock?.asleep ? ", the database sleeps" : "";
  return [status, ...wrong.map(([check, word]) => `${check} ${word}`)].join(", ") + sleep;
}

function tableOf(queues: Status["queues"], isTerminal: boolean): string[] {
  const headers = ["QUEUE", "STATE", "PENDING", "LATER", "PROCESSING", "COMPLETED", "DEAD"];
  const rows = queues.map(({ queue, paused, books }) => [
    queue,
    paused ? "paused" : "running",
    ...[books.pending, books.scheduled, books.leased, books.completed, books.dead].map(count),
  ]);
  if (rows.length === 0) return ["no queue has had a job yet"];
  return isTerminal ? align(headers, rows, { width: process.stdout.columns }) : align(headers, rows);
}

function roundsOf({ rounds }: Status["stats"]): string {
  const newest = shownRounds.flatMap((kind) => rounds.find((round) => round.kind === kind) ?? []);
  return newest
    .map(({ kind, ended_at, reason }) => `${kind} ${ago(ended_at)}${reason === "error" ? " FAILED" : ""}`)
    .join(", ");
}

function sumOf(minutes: Status["stats"]["minutes"]) {
  const sum = { enqueued: 0, completed: 0, failed: 0 };
  for (const { enqueued, completed, failed } of minutes) {
    sum.enqueued += enqueued;
    sum.completed += completed;
    sum.failed += failed;
  }
  return sum;
}
