// sluice queues: list, pause, resume, blocked.
import type { Commands } from "../command-table.ts";
import { actionCommand, listCommand } from "../operation-command.ts";
import { firstLine } from "../output/words.ts";

export const commands: Commands = {
  list: listCommand("listQueues", {
    examples: ["queues list", "queues list --json | jq '.queues[] | select(.paused)'"],
    rows: ({ queues }) => queues,
    columns: [
      ["QUEUE", ({ queue }) => queue],
      ["STATE", ({ paused }) => (paused ? "paused" : "running")],
      ["PENDING", ({ books }) => books.pending],
      ["SCHEDULED", ({ books }) => books.scheduled],
      ["BLOCKED", ({ books }) => books.blocked],
      ["PROCESSING", ({ books }) => books.leased],
      ["COMPLETED", ({ books }) => books.completed],
      ["DEAD", ({ books }) => books.dead],
      ["PAUSED SINCE", ({ paused_since: since }) => since],
    ],
    empty: "there are no queues: the first job makes one",
  }),
  pause: actionCommand("pauseQueue", {
    details: "Running jobs go on. No new ones are started.",
    examples: ["queues pause orders"],
    say: ({ queue }) => `${queue} is paused`,
  }),
  resume: actionCommand("resumeQueue", {
    examples: ["queues resume orders"],
    say: ({ queue }) => `${queue} is running`,
  }),
  blocked: listCommand("listPartitions", {
    sets: { blocked: "true" },
    examples: ["queues blocked orders"],
    rows: ({ partitions }) => partitions,
    columns: [
      ["PARTITION KEY", (key) => key.partition_key],
      ["SINCE", (key) => key.since],
      ["WAITING", (key) => `${key.waiting}${key.waiting_is_more ? "+" : ""}`],
      ["DEAD JOB", (key) => key.job_id],
      ["TYPE", (key) => key.type],
      ["REASON", (key) => key.dead_reason],
      ["ERROR", (key) => firstLine(key.error)],
    ],
    empty: "no partition key is blocked",
  }),
};
