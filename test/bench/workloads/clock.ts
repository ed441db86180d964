// clock: Sluice alone, the whole path with the Durable Object. How late delays, retries and slots start; what an idle deployment sends.
import { setTimeout as sleep } from "node:timers/promises";
import { startNeonProxy } from "../../../src/local/neon-proxy.ts";
import { startSimulated } from "../../support/simulated-deployment.ts";
import { startWorkerd, type Workerd } from "../../support/workerd.ts";
import { connect } from "../systems/connections.ts";
import type { Bench, Workload } from "./workload.ts";

export const clockWorker = new URL("../../support/clock-worker.ts", import.meta.url).pathname;
export const adminKey = "sk_the_key_of_the_bench";
const sizes = {
  full: { seconds: 20, idleMinutes: { awake: 60, asleep: 1440 } },
  quick: { seconds: 5, idleMinutes: { awake: 20, asleep: 360 } },
  smoke: { seconds: 2, idleMinutes: { awake: 4, asleep: 10 } },
};
/** Of each kind. */
const jobsPerSecond = 10;
const cronEveryMs = 10_000;
const crons = ["* * * * *", "*/2 * * * *", "1-59/2 * * * *"];
const doneWithinMs = 60_000;

export const clock: Workload = {
  name: "clock",
  about: "Worker and clock in workerd: how late delays, retries and slots start; an idle deployment",
  async run(bench) {
    const system = bench.systems.find(({ name }) => name === "sluice");
    if (!system) return;
    for (const withCrons of [false, true])
      await bench.stage.withDatabase(system, (url) => measureLateness(bench, url, { withCrons }));
    for (const state of ["awake", "asleep"] as const)
      await bench.stage.withDatabase(system, (url) => measureIdle(bench, url, state));
  },
};

export async function withDeployment<T>(
  url: string,
  settings: Record<string, string>,
  work: (deployment: { workerd: Workerd; requests(): number }) => Promise<T>,
): Promise<T> {
  const proxy = await startNeonProxy({ postgresPort: Number(new URL(url).port) });
  const bindings = { SLUICE_ADMIN_KEY: adminKey, DATABASE_URL: url, SLUICE_NEON_ENDPOINT: proxy.endpoint };
  const workerd = await startWorkerd({
    worker: clockWorker,
    bindings: { ...bindings, ...settings },
    hasClock: true,
  });
  try {
    return await work({ workerd, requests: proxy.requests });
  } finally {
    await workerd.stop();
    await proxy.close();
  }
}

export async function send(workerd: Workerd, path: string, body: object, method = "POST"): Promise<void> {
  const response = await fetch(new URL(path, workerd.url), {
    method,
    headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text}`);
}

export function recordOwn(bench: Bench, workload: string, what: string, unit: string, value: number): void {
  bench.record({ workload, system: "sluice", what, unit, better: "less", value });
}

/** The types of the deployable Worker: `echo` and `flaky` may run in a nudge, `sleep` has the default time-out. */
async function measureLateness(
  bench: Bench,
  url: string,
  { withCrons }: { withCrons: boolean },
): Promise<void> {
  await withDeployment(url, {}, async ({ workerd }) => {
    const stopped = new AbortController();
    const ticking = withCrons ? tick(workerd, stopped.signal) : undefined;
    await send(
      workerd,
      "/v1/schedules/each-second",
      { cron: "* * * * * *", type: "echo", queue: "slots" },
      "PUT",
    );
    const jobs = sizes[bench.size].seconds * jobsPerSecond;
    for (let n = 0; n < jobs; n++) {
      await Promise.all([
        send(workerd, "/v1/jobs", { type: "echo", queue: "delays", delay_seconds: 1 + (n % 5) }),
        send(workerd, "/v1/jobs", { type: "flaky", queue: "retries", payload: { fail_times: 1 } }),
        send(workerd, "/v1/jobs", { type: "sleep", queue: "long", payload: { ms: 0 } }),
        sleep(1000 / jobsPerSecond),
      ]);
    }
    const rows = await latenessOf(url, jobs);
    stopped.abort();
    await ticking;
    const crons = withCrons ? `crons every ${cronEveryMs / 1000} s` : "crons off";
    for (const { kind, p50, p99 } of rows) {
      recordOwn(bench, "clock", `${kind} start late, ${crons}, p50`, "ms", Number(p50));
      recordOwn(bench, "clock", `${kind} start late, ${crons}, p99`, "ms", Number(p99));
      bench.progress(
        `${crons}  ${kind}: p50 ${Number(p50).toFixed(0)} ms, p99 ${Number(p99).toFixed(0)} ms late`,
      );
    }
  });
}

/** More often than in production, so that they weigh more. */
async function tick(workerd: Workerd, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    for (const cron of crons) await workerd.fire(cron);
    await sleep(cronEveryMs, undefined, { signal }).catch(() => {});
  }
}

/** By the database's clock: from the time at which a job was due to its claim. */
async function latenessOf(url: string, jobs: number) {
  const client = await connect(url);
  try {
    const giveUpMs = performance.now() + doneWithinMs;
    for (;;) {
      const { rows } = await client.query(`
        select kind, count(*)::int as jobs,
               percentile_cont(0.5) within group (order by late) as p50,
               percentile_cont(0.99) within group (order by late) as p99
        from (
          select queue as kind, 1000 * extract(epoch from started_at - case queue
                   when 'slots' then (schedule ->> 'slot')::timestamptz
                   when 'retries' then (errors -> -1 ->> 'at')::timestamptz + interval '1 s'
                   when 'delays' then scheduled_at
                   else created_at end) as late
          from sluice.jobs
          where status = 'completed' and queue in ('delays', 'retries', 'long', 'slots')
        ) as jobs
        group by kind order by kind`);
      const isDone = rows.every(({ kind, jobs: done }) => kind === "slots" || done === jobs);
      if (rows.length === 4 && isDone) return rows as { kind: string; p50: number; p99: number }[];
      if (performance.now() > giveUpMs) throw new Error(`not all jobs ran: ${JSON.stringify(rows)}`);
      await sleep(100);
    }
  } finally {
    await client.end();
  }
}

async function measureIdle(bench: Bench, databaseUrl: string, state: "awake" | "asleep"): Promise<void> {
  const minutes = sizes[bench.size].idleMinutes[state];
  const settings = { SLUICE_ADMIN_KEY: adminKey, SLUICE_MAX_SLEEP_MINUTES: state === "awake" ? "0" : "240" };
  const deployment = await startSimulated({ databaseUrl, settings });
  try {
    await deployment.pass(10);
    const before = callsOf(await deployment.status());
    const { requests } = await deployment.pass(minutes);
    const calls = callsOf(await deployment.status()) - before;
    const aDay = 1440 / minutes;
    recordOwn(bench, "clock", `idle and ${state}: statements a day`, "statements", requests * aDay);
    recordOwn(bench, "clock", `idle and ${state}: calls of the clock a day`, "calls", calls * aDay);
    bench.progress(
      `idle ${state}  ${requests * aDay} statements and ${calls * aDay} calls of the clock a day`,
    );
  } finally {
    await deployment.stop();
  }
}

export function callsOf({ calls }: { calls: Record<string, number> }): number {
  return Object.values(calls).reduce((sum, count) => sum + count, 0);
}
