// schedules: Sluice alone, without the Worker. What claims cost while there are schedules with planned slots, and while there are none.
import type pg from "pg";
import { percentile } from "../statistics.ts";
import { connect } from "../systems/connections.ts";
import { connectionOf } from "../systems/sluice.ts";
import { recordOwn } from "./clock.ts";
import { logPosition, measureLog } from "./wal.ts";
import type { Bench, Trial, Workload } from "./workload.ts";

const sizes = {
  full: { rounds: 3, schedules: 10_000, jobs: 5_000, claims: 500 },
  quick: { rounds: 1, schedules: 2_000, jobs: 1_000, claims: 100 },
  smoke: { rounds: 1, schedules: 20, jobs: 300, claims: 10 },
};

export const schedulesWorkload: Workload = {
  name: "schedules",
  about: "claims with and without many schedules: their time and their log",
  async run(bench) {
    const system = bench.systems.find(({ name }) => name === "sluice");
    if (!system) return;
    const { rounds, schedules } = sizes[bench.size];
    for (let round = 0; round < rounds; round++)
      for (const count of round % 2 === 0 ? [0, schedules] : [schedules, 0])
        await bench.stage.withDatabase(system, async (url) => {
          await makeSchedules(url, count);
          const queue = await system.open(url);
          await measure(bench, { system, queue, url, round }, count).finally(() => queue.close());
        });
  },
};

/** Each has ten slots, on the next days. */
async function makeSchedules(url: string, count: number): Promise<void> {
  const client = await connect(url);
  await client.query(
    `select count(sluice.put_schedule('bench', 'schedule-' || n, '{"cron": "0 2 * * *", "type": "mail"}'))
     from generate_series(1, $1::int) as n`,
    [count],
  );
  await client.query(`
    select sluice.plan_slots(jsonb_agg(jsonb_build_object(
      'number', number, 'from', planned_until::text, 'refill_ms', floor(extract(epoch from now() + interval '5 days') * 1000),
      'slots_ms', (select jsonb_agg(floor(extract(epoch from now() + make_interval(days => day)) * 1000 + number))
                   from generate_series(1, 10) as day))))
    from sluice.schedule having count(*) > 0`);
  await client.query("analyze");
  await client.end();
}

async function measure(bench: Bench, trial: Trial, count: number): Promise<void> {
  const { jobs } = sizes[bench.size];
  const name = count === 0 ? "no schedules" : `${count} schedules`;
  const { finish } = await measureLog(bench, trial, { jobs });
  const one = await measureClaims(bench, trial);
  recordOwn(bench, "schedules", `${name}: log of a job, claimed and settled by 100`, "bytes", finish);
  recordOwn(bench, "schedules", `${name}: log of a claim of 1`, "bytes", one.bytes);
  recordOwn(bench, "schedules", `${name}: claim of 1, p50`, "ms", one.p50);
  recordOwn(bench, "schedules", `${name}: claim of 1, p10`, "ms", one.p10);
  bench.progress(
    `${name}  by 100: ${finish.toFixed(1)} B a job; claim of 1: ${one.bytes.toFixed(0)} B, p10 ${one.p10.toFixed(2)} ms, p50 ${one.p50.toFixed(2)} ms`,
  );
}

/** Claims of one job each. The bytes are the median, because a page that is split or written whole is no claim's. */
async function measureClaims(bench: Bench, { queue, url }: Trial) {
  const { claims } = sizes[bench.size];
  const payload = { atMs: 0, address: "a@example.com", subject: "hello" };
  await queue.enqueue(Array.from({ length: claims }, (_, n) => ({ ...payload, n })));
  const client: pg.Client = await connect(url);
  const connection = connectionOf(client, { types: ["mail"] });
  const ms: number[] = [];
  const bytes: number[] = [];
  for (let n = 0; n < claims; n++) {
    const before = await logPosition(client);
    const startedMs = performance.now();
    if ((await connection.claim(1)).length !== 1) throw new Error("a claim found no job");
    ms.push(performance.now() - startedMs);
    bytes.push((await logPosition(client)) - before);
  }
  await client.end();
  return { bytes: percentile(bytes, 0.5), p50: percentile(ms, 0.5), p10: percentile(ms, 0.1) };
}
