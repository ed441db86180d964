// http: the whole path, for Sluice alone: a Worker in workerd, Postgres, and between them Neon's protocol through the local
// proxy, or `pg` through a Hyperdrive binding. One drain at batch 100 of echo jobs, which return their payload; then jobs that
// are started by the nudge of their enqueue.
import { setTimeout as sleep } from "node:timers/promises";
import { startNeonProxy } from "../../../src/local/neon-proxy.ts";
import { startWorkerd, type Workerd } from "../../support/workerd.ts";
import { connect } from "../systems/connections.ts";
import type { Bench, Workload } from "./workload.ts";

const worker = new URL("../../../src/worker.ts", import.meta.url).pathname;
const adminKey = "sk_the_key_of_the_bench";
const drainCron = "* * * * *";
const batch = 100;
const sizes = {
  full: { rounds: 3, jobs: 30_000, nudges: 200 },
  quick: { rounds: 1, jobs: 4_000, nudges: 25 },
  smoke: { rounds: 1, jobs: 300, nudges: 5 },
};
const nudgeEveryMs = 20;
const doneWithinMs = 60_000;

export const http: Workload = {
  name: "http",
  about: "Worker in workerd, proxy or Hyperdrive, Postgres: one drain of echo jobs, and the nudge",
  async run(bench) {
    const system = bench.systems.find(({ name }) => name === "sluice");
    if (!system) return;
    await bench.stage.withDatabase(system, async (url) => {
      const proxy = await startNeonProxy({ postgresPort: Number(new URL(url).port) });
      const bindings = { SLUICE_ADMIN_KEY: adminKey, SLUICE_MAX_DRAINS: "1" };
      const neon = { DATABASE_URL: url, SLUICE_NEON_ENDPOINT: proxy.endpoint };
      const byNeon = await startWorkerd({ worker, bindings: { ...bindings, ...neon } });
      const byPg = await startWorkerd({ worker, bindings, hyperdriveUrl: url });
      const { serverCpuSeconds } = bench.stage;
      const path = { url, requests: proxy.requests, serverCpuSeconds };
      try {
        await measure(bench, [
          { ...path, name: "http", workerd: byNeon },
          { ...path, name: "pg", workerd: byPg },
        ]);
      } finally {
        await byNeon.stop();
        await byPg.stop();
        await proxy.close();
      }
    });
  },
};

interface Path {
  /** How the Worker reaches Postgres. */
  name: "http" | "pg";
  url: string;
  workerd: Workerd;
  requests(): number;
  serverCpuSeconds(): number;
}

/** The ways take turns, so that both are measured on the same machine. */
async function measure(bench: Bench, paths: readonly Path[]): Promise<void> {
  const { rounds, jobs, nudges } = sizes[bench.size];
  for (const path of paths) await drainOnce(path, batch); // warm
  for (let round = 0; round < rounds; round++)
    for (const path of paths) {
      const drained = await drainOnce(path, jobs);
      recordDrain(bench, path.name, jobs, drained);
      const { seconds, requests } = drained;
      bench.progress(
        `${path.name} ${round + 1}/${rounds}  ${(jobs / seconds).toFixed(0)}/s, ${requests} round trips by HTTP`,
      );
    }
  for (const path of paths) {
    const { name } = path;
    const waits = await nudged(path, nudges);
    record(bench, `${name}: enqueue to start by nudge, p50`, "ms", "less", waits.p50);
    record(bench, `${name}: enqueue to start by nudge, p99`, "ms", "less", waits.p99);
    bench.progress(`${name}  nudge: start p50 ${waits.p50.toFixed(1)} ms, p99 ${waits.p99.toFixed(1)} ms`);
  }
}

function recordDrain(
  bench: Bench,
  name: Path["name"],
  jobs: number,
  { seconds, cpuSeconds, requests }: Awaited<ReturnType<typeof drainOnce>>,
): void {
  record(bench, `${name}: one drain of echo jobs`, "jobs/s", "more", jobs / seconds);
  for (const [part, cpu] of Object.entries(cpuSeconds))
    record(bench, `${name}: CPU of ${part} for a job`, "µs", "less", (cpu * 1e6) / jobs);
  if (name === "http")
    record(bench, "http: round trips for a batch of 100", "requests", "less", (requests / jobs) * batch);
}

function record(bench: Bench, what: string, unit: string, better: "more" | "less", value: number): void {
  bench.record({ workload: "http", system: "sluice", what, unit, better, value });
}

/** A round of the drain cron over so many waiting jobs. Throws unless all of them were completed. */
async function drainOnce({ url, workerd, requests, serverCpuSeconds }: Path, jobs: number) {
  const client = await connect(url);
  await client.query(
    `select count(*)
     from sluice.enqueue_many('echo', array(select jsonb_build_object('n', n, 'text', repeat('x', 80))
                                            from generate_series(1, $1::int) as n))`,
    [jobs],
  );
  const cpuSeconds = () => ({
    workerd: workerd.cpuSeconds(),
    "the server": serverCpuSeconds(),
    "the proxy": process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6,
  });
  const before = { cpu: cpuSeconds(), requests: requests(), ms: performance.now() };
  const ended = await workerd.fire(drainCron);
  const spent = {
    seconds: (performance.now() - before.ms) / 1000,
    cpuSeconds: lessEach(cpuSeconds(), before.cpu),
    requests: requests() - before.requests,
  };
  const { rows } = await client.query("select sum(pending + leased)::int as left from sluice.books");
  await client.end();
  if (!ended || rows[0].left !== 0) throw new Error(`the drain left ${rows[0].left} jobs`);
  return spent;
}

function lessEach<Name extends string>(after: Record<Name, number>, before: Record<Name, number>) {
  const names = Object.keys(after) as Name[];
  return Object.fromEntries(names.map((name) => [name, after[name] - before[name]]));
}

/** From the job's creation to its claim, both by the database's clock. */
async function nudged({ url, workerd }: Path, count: number): Promise<{ p50: number; p99: number }> {
  const ids: string[] = [];
  for (let job = 0; job < count; job++) {
    const response = await fetch(new URL("/v1/jobs", workerd.url), {
      method: "POST",
      headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
      body: JSON.stringify({ type: "echo", payload: { job } }),
    });
    const { job_id: id } = (await response.json()) as { job_id: string };
    ids.push(id);
    await sleep(nudgeEveryMs);
  }
  const client = await connect(url);
  const giveUpMs = performance.now() + doneWithinMs;
  for (;;) {
    const { rows } = await client.query(
      `select count(*)::int as completed,
              percentile_cont(0.5) within group (order by wait) as p50,
              percentile_cont(0.99) within group (order by wait) as p99
       from (
         select extract(epoch from started_at - created_at) * 1000 as wait
         from sluice.jobs
         where id = any($1) and status = 'completed'
       ) as waits`,
      [ids],
    );
    if (rows[0].completed === count || performance.now() > giveUpMs) {
      await client.end();
      if (rows[0].completed !== count) throw new Error(`of ${count} nudged jobs ${rows[0].completed} ran`);
      return { p50: Number(rows[0].p50), p99: Number(rows[0].p99) };
    }
    await sleep(nudgeEveryMs);
  }
}
