// A fan-in of 10,000, completed by 8 connections that claim and settle by 100: at least 0.6 of the rate of plain jobs. The parts are
// enqueued in the transaction of the job that waits for them, or were there before ("adopted"). Rounds alternate, so that a slow
// moment of the machine meets all three.
import pg from "pg";
import { expect, test } from "vitest";
import { median } from "../support/explain.ts";
import { threadCpuMs } from "../support/process-cpu.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const parts = 10_000;
const connections = 8;
const rounds = 5;
const bar = 0.6;

type Queue = "plain" | "together" | "adopted";

async function fill(queue: Queue): Promise<void> {
  const client = await db.pool.connect();
  const enqueueParts = async () =>
    (
      await client.query<{ ids: string[] }>(
        `select array_agg(id) as ids from sluice.enqueue_many('echo', array(select jsonb_build_object('n', n) from generate_series(1, $1) n), queue => $2) as id`,
        [parts, queue],
      )
    ).rows[0]?.ids ?? [];
  const enqueueJoin = (ids: readonly string[]) =>
    client.query("select sluice.enqueue('echo', '{}', queue => $1, after => $2)", [
      queue,
      JSON.stringify(ids),
    ]);
  if (queue === "together") await client.query("begin");
  const ids = await enqueueParts();
  if (queue !== "plain") await enqueueJoin(ids);
  if (queue === "together") await client.query("commit");
  client.release();
}

interface Answer {
  key: string;
  has_more: boolean;
  leases: { jobs: [string][] }[] | null;
}

const claimText = `select sluice.claim($1, '{echo}', 100, 300, p_worker => 'test', p_settle_ids => $2, p_settle_keys => $3) as answer`;

interface Drained {
  jobs: number;
  /** Of the server. */
  cpuMs: number;
}

/** Claims and completes, as a drain does, until nothing is left. */
async function drain(queue: Queue, client: pg.Client): Promise<Drained> {
  const { pid } = (await client.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0] as {
    pid: number;
  };
  const before = threadCpuMs(pid);
  let held: string[] = [];
  let key = "";
  let jobs = 0;
  for (;;) {
    const values = held.length > 0 ? [queue, held, held.map(() => key)] : [queue, null, null];
    const { answer } = (await client.query<{ answer: Answer }>(claimText, values)).rows[0] as {
      answer: Answer;
    };
    held = (answer.leases ?? []).flatMap((lease) => lease.jobs.map(([id]) => id)).sort();
    key = answer.key;
    jobs += held.length;
    if (held.length === 0 && !answer.has_more) break;
  }
  return { jobs, cpuMs: threadCpuMs(pid) - before };
}

interface Round {
  rate: number;
  /** Server CPU, in microseconds a job. */
  cpu: number;
}

async function runRound(queue: Queue, clients: readonly pg.Client[]): Promise<Round> {
  await emptyQueue(db.pool);
  await fill(queue);
  await db.pool.query("checkpoint");
  const started = performance.now();
  const drained = await Promise.all(clients.map((client) => drain(queue, client)));
  const seconds = (performance.now() - started) / 1000;
  const jobs = drained.reduce((sum, one) => sum + one.jobs, 0);
  expect(jobs).toBe(queue === "plain" ? parts : parts + 1);
  return { rate: jobs / seconds, cpu: (drained.reduce((sum, one) => sum + one.cpuMs, 0) * 1000) / jobs };
}

test("a fan-in of 10,000 runs at 0.6 of the rate of plain jobs, also if its parts were there before", async () => {
  const clients = Array.from({ length: connections }, () => new pg.Client({ connectionString: db.url }));
  for (const client of clients) await client.connect();
  const seen: Record<Queue, Round[]> = { plain: [], together: [], adopted: [] };
  for (let round = 0; round <= rounds; round++)
    for (const queue of ["plain", "together", "adopted"] as const) {
      const one = await runRound(queue, clients);
      if (round > 0) seen[queue].push(one); // the first one fills caches
    }
  for (const client of clients) await client.end();
  const ratios = (queue: Queue) =>
    seen[queue].map(({ rate }, n) => rate / (seen.plain[n]?.rate ?? Number.NaN));
  for (const queue of ["plain", "together", "adopted"] as const) {
    const rate = Math.round(median(seen[queue].map((round) => round.rate)));
    const cpu = median(seen[queue].map((round) => round.cpu)).toFixed(1);
    const all = ratios(queue)
      .map((ratio) => ratio.toFixed(2))
      .join(" ");
    process.stdout.write(`${queue}: ${rate} jobs/s, ${cpu} µs of CPU a job, of plain: ${all}\n`);
  }
  expect(median(ratios("together"))).toBeGreaterThanOrEqual(bar);
  expect(median(ratios("adopted"))).toBeGreaterThanOrEqual(bar);
});
