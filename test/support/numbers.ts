// Measures the engine in a large queue: server times, buffers, bytes of WAL, and rates over a few connections.
import pg from "pg";
import {
  type ClaimedRow,
  claimText,
  enqueueText,
  type HeldJobs,
  heldJobs,
  heldOf,
  newJobs,
  settleBatch,
  settleText,
  settleValues,
} from "./churn.ts";
import { type Call, measure, measureOften } from "./explain.ts";
import { hotCalls } from "./hot-calls.ts";
import { commonTypes, rareType } from "./large-queue.ts";

export interface Measured {
  what: string;
  value: number;
  unit: "ms" | "buffers" | "bytes" | "jobs/s";
  /** The maximum. Times are for an idle machine that waits for its disk. */
  bar?: number;
}

const types = [...commonTypes, rareType];
const claimAll = "select sluice.claim($1, $2, $3::int, 600) as claimed";

export async function measureEngine(url: string): Promise<Measured[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const measured = [
    ...(await measureCalls(client)),
    ...(await measureLog(client)),
    ...(await measureManyLanes(client)),
    ...(await measureEnqueueRates(client)),
  ];
  await client.end();
  return [...measured, ...(await measureDrainRates(url))];
}

async function measureCalls(client: pg.Client): Promise<Measured[]> {
  const bars: Record<string, number> = { "claim 1": 1, "claim 100": 2.5 };
  const measured: Measured[] = [];
  const rare = {
    name: "list a rare type",
    text: "select * from sluice.list_jobs($1, null, null, null, null, 100)",
  };
  for (const call of [...hotCalls, { ...rare, values: () => [[rareType]] }]) {
    const times = call.name.startsWith("claim") ? 50 : 11;
    const { ms, buffers } = await measureOften(times, async () =>
      measure(client, call.text, await call.values(client)),
    );
    const bar = bars[call.name];
    measured.push({ what: call.name, value: ms, unit: "ms", ...(bar !== undefined && { bar }) });
    measured.push({ what: call.name, value: buffers, unit: "buffers" });
  }
  const settle = await measureOften(11, async () =>
    measure(client, settleText, await mixedSettlements(client)),
  );
  return [...measured, { what: "settle 1,000, mixed", value: settle.ms, unit: "ms", bar: 25 }];
}

async function mixedSettlements(client: pg.Client): Promise<unknown[]> {
  const { ids, keys } = await claimSome(client, 1000);
  const kinds = ["complete", "complete", "retry", "bury", "snooze", "release"];
  const outcomes = ids.map((_, index) => ({
    ...{ outcome: kinds[index % kinds.length], message: "busy", seconds: 3_600 },
  }));
  return [ids, keys, JSON.stringify(outcomes)];
}

async function claimSome(client: pg.Client, size: number): Promise<HeldJobs> {
  return heldOf((await client.query<ClaimedRow>(claimAll, ["default", types, size])).rows);
}

async function measureLog(client: pg.Client): Promise<Measured[]> {
  await client.query("truncate sluice.lease");
  const total = { enqueue: 0, finish: 0 };
  const batches = 50;
  for (let batch = 0; batch < batches; batch++) {
    total.enqueue += (await measure(client, enqueueText, [newJobs(100)])).walBytes;
    total.finish += (await measure(client, claimText, [100])).walBytes;
    total.finish += (await measure(client, settleText, settleValues(await heldJobs(client)))).walBytes;
  }
  return [
    { what: "log of a job, enqueued by 100", value: total.enqueue / batches / 100, unit: "bytes", bar: 600 },
    {
      what: "log of a job, claimed and settled by 100",
      value: total.finish / batches / 100,
      unit: "bytes",
      bar: 250,
    },
  ];
}

/** Makes 300 lanes, of which only the last has jobs. */
async function measureManyLanes(client: pg.Client): Promise<Measured[]> {
  const wide = Array.from({ length: 30 }, (_, index) => `wide-${index}`);
  await client.query("set search_path to sluice");
  await client.query(
    `select lane_of('wide', type, priority::smallint)
     from unnest($1::text[]) as type, generate_series(0, 9) as priority`,
    [wide],
  );
  await client.query("select enqueue_many($1, array_fill('{}'::jsonb, array[200]), 'wide', 0)", [
    wide.at(-1),
  ]);
  const call: Call = await measureOften(50, () => measure(client, claimAll, ["wide", wide, 1]));
  return [
    { what: "claim 1 behind 299 empty lanes", value: call.ms, unit: "ms", bar: 1.5 },
    { what: "claim 1 behind 299 empty lanes", value: call.buffers, unit: "buffers" },
  ];
}

async function measureEnqueueRates(client: pg.Client): Promise<Measured[]> {
  const measured: Measured[] = [];
  for (const [size, rounds] of [
    [1, 500],
    [100, 100],
    [1000, 20],
  ] as const) {
    const seconds = await secondsOf(async () => {
      for (let round = 0; round < rounds; round++) await client.query(enqueueText, [newJobs(size)]);
    });
    measured.push({
      what: `enqueue by ${size}, 1 connection`,
      value: (size * rounds) / seconds,
      unit: "jobs/s",
    });
  }
  const seconds = await secondsOf(() =>
    client.query(`
      select count(*)
      from sluice.enqueue_many('mail', array(select jsonb_build_object('n', n) from generate_series(1, 100000) as n))`),
  );
  return [...measured, { what: "enqueue_many of 100,000 rows", value: seconds * 1000, unit: "ms" }];
}

async function measureDrainRates(url: string): Promise<Measured[]> {
  const measured: Measured[] = [];
  for (const [size, rounds] of [
    [1, 1000],
    [10, 500],
    [100, 200],
    [1000, 25],
  ] as const) {
    let jobs = 0;
    const seconds = await secondsOf(async () => {
      const drained = await Promise.all(Array.from({ length: 4 }, () => drainOn(url, size, rounds)));
      jobs = drained.reduce((sum, count) => sum + count);
    });
    measured.push({
      what: `claim and settle by ${size}, 4 connections`,
      value: jobs / seconds,
      unit: "jobs/s",
    });
  }
  return measured;
}

/** Returns the number of jobs claimed in some rounds. A claim may get fewer than its limit when two run at once. */
async function drainOn(url: string, size: number, rounds: number): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  let jobs = 0;
  for (let round = 0; round < rounds; round++) {
    const batch = await claimSome(client, size);
    await settleBatch(client, batch);
    jobs += batch.ids.length;
  }
  await client.end();
  return jobs;
}

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}
