// sluice queues: list, show, pause, resume, blocked.
import type { Commands } from "../command-table.ts";
import { actionCommand, listCommand, operationCommand } from "../operation-command.ts";
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
  show: operationCommand("getQueue", {
    examples: ["queues show orders"],
    show({ priorities, top_keys, books: _, ...queue }, out) {
      out.fields(queue);
      if (out.isTerminal) out.line("");
      out.table(
        priorities,
        [
          ["PRIORITY", ({ priority }) => priority],
          ["PENDING", ({ pending }) => pending],
          ["SCHEDULED", ({ scheduled }) => scheduled],
          ["BLOCKED", ({ blocked }) => blocked],
          ["PROCESSING", ({ leased }) => leased],
        ],
        "it never had a job",
      );
      if (top_keys.keys.length === 0) return;
      if (out.isTerminal) out.line("");
      out.table(
        top_keys.keys,
        [
          ["KEY", ({ key }) => key],
          ["WAITING", ({ waiting }) => waiting],
          ["RUNNING", ({ running }) => running],
          ["SHARE", ({ share }) => `${Math.round(share * 100)} %`],
        ],
        "",
      );
    },
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
