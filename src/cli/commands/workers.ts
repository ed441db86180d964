// sluice workers: the live workers and their buckets.
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
};
