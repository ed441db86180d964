// One process dies under load: its jobs are isolated and pending again, and the queue keeps its rate.
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { crons, startFaultDeployment } from "../support/fault-deployment.ts";
import { useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const key = "sk_the_key_of_the_fault_tests";
const perTick = { second: 10, quick: 2 };
const tickMs = 100;
const windowSeconds = 5;
const windows = { before: 3, after: 10 };
/** The least share of the earlier rate, and for how long the rate may be lower. */
const bar = { share: 0.8, seconds: 30 };

async function completed(type: string): Promise<number> {
  const text = "select coalesce(sum(completed), 0)::int as n from sluice.books where type = $1";
  return (await db.pool.query<{ n: number }>(text, [type])).rows[0]?.n ?? 0;
}

async function isolated(): Promise<number> {
  const text = `select count(*)::int as n from (
      select lane from sluice.ready union all select lane from sluice.scheduled
    ) as waiting join sluice.lane using (lane) where group_size > 0`;
  return (await db.pool.query<{ n: number }>(text)).rows[0]?.n ?? 0;
}

test("a process that dies with 100 or more running jobs costs its queue at most 20 % for 30 s", {
  timeout: 180_000,
}, async () => {
  const workerd = await startFaultDeployment(db);
  let isOver = false;
  const every = async (ms: number, step: () => Promise<unknown>) => {
    while (!isOver) {
      void step().catch(() => {}); // a killed process does not answer
      await sleep(ms);
    }
  };
  const jobs = [
    ...Array.from({ length: perTick.second }, () => ({ type: "second", payload: { ms: 1000 } })),
    ...Array.from({ length: perTick.quick }, () => ({ type: "quick", payload: { ms: 5 } })),
  ];
  const load = Promise.all([
    every(tickMs, () =>
      fetch(`${workerd.url}v1/jobs/batch`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ jobs }),
        signal: AbortSignal.timeout(5000),
      }),
    ),
    every(1000, () => workerd.fire(crons.reap)),
    every(5000, () => workerd.fire(crons.drain)),
  ]);
  const rates: { second: number; quick: number; isolated: number }[] = [];
  try {
    await sleep(3000); // until the rate is steady
    let last = { second: await completed("second"), quick: await completed("quick") };
    for (let window = 0; window < windows.before + windows.after; window++) {
      if (window === windows.before) {
        const { rows } = await db.pool.query("select sum(cardinality(ids))::int as n from sluice.lease");
        console.log(`killed with ${rows[0]?.n} jobs in flight`);
        workerd.kill();
      }
      await sleep(windowSeconds * 1000);
      const now = { second: await completed("second"), quick: await completed("quick") };
      rates.push({
        second: (now.second - last.second) / windowSeconds,
        quick: (now.quick - last.quick) / windowSeconds,
        isolated: await isolated(),
      });
      last = now;
    }
  } finally {
    isOver = true;
    await load;
    await workerd.stop();
  }
  console.table(rates);
  for (const type of ["second", "quick"] as const) {
    const before = Math.max(...rates.slice(0, windows.before).map((rate) => rate[type]));
    const low = rates.slice(windows.before).filter((rate) => rate[type] < before * bar.share);
    expect(low.length * windowSeconds, type).toBeLessThanOrEqual(bar.seconds);
    expect(rates.at(-1)?.[type], type).toBeGreaterThan(before * bar.share);
  }
  const dead = await db.pool.query("select from sluice.closed");
  expect(dead.rowCount).toBe(0);
});
