// sluice workers: the live workers and their buckets, and the rounds.
import type { Commands } from "../command-table.ts";
import { listCommand } from "../operation-command.ts";
import { ago } from "../output/words.ts";

export const commands: Commands = {
  "": listCommand("listWorkers", {
    examples: ["workers", "workers --json | jq '.workers | length'"],
    rows: ({ workers }) => workers,
    columns: [
      ["WORKER", (worker) => worker.worker_id],
      ["KIND", ({ kind }) => kind],
      ["QUEUES", ({ queues }) => queues.join(", ")],
      ["BUCKETS", (worker) => Object.values(worker.bucket_counts).join(", ")],
      ["STARTED", (worker) => worker.started_at],
      ["SEEN", (worker) => ago(worker.seen_at)],
    ],
    empty: "no worker is live",
  }),
  rounds: listCommand("listRounds", {
    examples: ["workers rounds", "workers rounds --kind drain --limit 50"],
    rows: ({ rounds }) => rounds,
    columns: [
      ["ENDED", (round) => `${round.ended_at} (${ago(round.ended_at)})`],
      ["ROUND", ({ kind, queue }) => (queue === null ? kind : `${kind} ${queue}`)],
      ["MS", (round) => Date.parse(round.ended_at) - Date.parse(round.started_at)],
      ["CLAIMED", ({ claimed }) => claimed],
      ["COMPLETED", ({ completed }) => completed],
      ["FAILED", ({ failed }) => failed],
      ["WHY IT ENDED", ({ reason, message }) => message ?? reason],
    ],
    empty: "no round was recorded",
  }),
};
