// A job that ends its isolate whenever it runs. It takes down its whole batch once and its isolated group once more; then
// it runs alone. No other job becomes dead because of it.
import { expect, test } from "vitest";
import { reapLeases } from "../../src/core/sql/index.ts";
import { bringForward, crons, startFaultDeployment } from "../support/fault-deployment.ts";
import { lookAt } from "../support/ports.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const maxAttempts = 3;
const others = 10;

async function enqueue(
  type: string,
  { count, ...payload }: { count: number; ms: number; ends?: boolean },
): Promise<string[]> {
  const payloads = "array(select $3::jsonb from generate_series(1, $2))";
  const text = `select sluice.enqueue_many($1, ${payloads}, max_attempts => $4) as id`;
  const { rows } = await db.pool.query<{ id: string }>(text, [
    type,
    count,
    JSON.stringify(payload),
    maxAttempts,
  ]);
  return rows.map((row) => row.id);
}

/** The sizes of the batches under lease. */
async function batchSizes(): Promise<number[]> {
  const text = "select sum(cardinality(ids))::int as jobs from sluice.lease group by key";
  return (await db.pool.query<{ jobs: number }>(text)).rows.map((row) => row.jobs);
}

async function isHeld(id: string): Promise<boolean> {
  return (await db.pool.query("select from sluice.lease where $1 = any(ids)", [id])).rowCount === 1;
}

test.each([
  // An isolated group has one type only, so a job of another type is alone after the first time.
  ["at once", { type: "poison", ms: 0, batches: [[others + 1], [1], [1]], attempts: 2 }],
  ["after a while", { type: "poison", ms: 300, batches: [[others + 1], [1], [1]], attempts: 2 }],
  ["among its own type", { type: "work", ms: 300, batches: [[others + 1], [others + 1], [1]], attempts: 3 }],
])(
  "a job that ends its isolate %s runs alone after the second time, and is dead after its attempts",
  {
    timeout: 180_000,
  },
  async (_, { type, ms, ...expected }) => {
    await emptyQueue(db.pool);
    // These jobs take longer than the one that ends the isolate, so none of them is settled before.
    const longer = { count: others / 2, ms: 4 * ms };
    const neighbours = await enqueue("work", longer);
    const [poison = ""] = await enqueue(type, { count: 1, ms, ends: true });
    neighbours.push(...(await enqueue("work", longer)));
    const workerd = await startFaultDeployment(db);
    try {
      const batches: number[][] = [];
      for (let attempt = 1; attempt <= maxAttempts; attempt++) {
        const round = workerd.fire(crons.drain);
        await expect.poll(() => isHeld(poison), { timeout: 10_000 }).toBe(true);
        await expect.poll(() => workerd.isAnswering({ withinMs: 1000 }), { timeout: 10_000 }).toBe(false);
        batches.push(await batchSizes());
        workerd.kill();
        expect(await round).toBe(false);
        await workerd.started();
        await db.pool.query("update sluice.lease set deadline = now() - interval '1 s'");
        await db.run(reapLeases({ limit: 100 }));
        await bringForward(db);
      }
      expect(batches).toEqual(expected.batches);
      expect(await lookAt(db, poison)).toMatchObject({
        status: "dead",
        deadReason: "abandoned",
        attempts: maxAttempts,
      });

      expect(await workerd.fire(crons.drain)).toBe(true);
      for (const id of neighbours) {
        expect(await lookAt(db, id)).toMatchObject({ status: "completed", attempts: expected.attempts });
      }
    } finally {
      await workerd.stop();
    }
  },
);
