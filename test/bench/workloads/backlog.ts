// backlog: the time of a claim when a million jobs of mixed priorities wait and 200,000 more are due in an hour, compared
// with a queue of 2,000. One connection.

import { median } from "../statistics.ts";
import type { OpenQueue } from "../systems/system.ts";
import { until } from "./run-log.ts";
import { settleDown } from "./settle-down.ts";
import { inTurns, type Workload } from "./workload.ts";

const sizes = {
  full: { large: { waiting: 1_000_000, scheduled: 200_000 }, claims: 100, withinMs: 15_000 },
  quick: { large: { waiting: 10_000, scheduled: 2_000 }, claims: 25, withinMs: 3_000 },
  smoke: { large: { waiting: 4_000, scheduled: 1_000 }, claims: 5, withinMs: 2_000 },
};
const small = { waiting: 2_000, scheduled: 0 };
const batches = [1, 10];

export const backlog: Workload = {
  name: "backlog",
  about: "a claim with 1,000,000 waiting and 200,000 scheduled, against 2,000",
  async run(bench) {
    const { large, claims, withinMs } = sizes[bench.size];
    for (const [label, size] of [
      ["2,000 waiting", small],
      [
        `${large.waiting.toLocaleString("en")} waiting, ${large.scheduled.toLocaleString("en")} scheduled`,
        large,
      ],
    ] as const) {
      await inTurns(bench, { name: `backlog, ${label}`, rounds: 1 }, async ({ system, queue, url }) => {
        await queue.fill(size);
        await settleDown(url);
        const told: string[] = [];
        for (const batch of batches) {
          const value = median(await claimTimes(queue, { batch, claims, withinMs }));
          bench.record({
            workload: "backlog",
            what: `claim of ${batch}, ${label}, p50`,
            unit: "ms",
            better: "less",
            system: system.name,
            value,
          });
          told.push(`claim of ${batch}: ${value.toFixed(2)} ms`);
        }
        return told.join("  ");
      });
    }
  },
};

/** At least one claim, and as many as wanted within the time. */
async function claimTimes(
  queue: OpenQueue,
  { batch, claims, withinMs }: { batch: number; claims: number; withinMs: number },
): Promise<number[]> {
  const times: number[] = [];
  const warmUps = 5;
  const worker = await queue.work({
    batch,
    connections: 1,
    run: () => true,
    onClaim: ({ ms }) => void times.push(ms),
  });
  const giveUpMs = performance.now() + withinMs;
  await until(
    () => times.length >= claims + warmUps || (times.length > 0 && performance.now() > giveUpMs),
  ).finally(() => worker.stop());
  return times.length > warmUps ? times.slice(warmUps) : times;
}
