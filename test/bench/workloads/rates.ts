// rates: Sluice alone, the whole path with the Durable Object. Round trips to the database and calls of the clock for each job, while
// jobs are enqueued over HTTP at a steady rate. No cron runs. The callers, the proxy, workerd and Postgres share the machine.
import { setTimeout as sleep } from "node:timers/promises";
import type { ClockStatus } from "../../support/clock-worker.ts";
import type { Workerd } from "../../support/workerd.ts";
import { connect } from "../systems/connections.ts";
import { callsOf, recordOwn, send, withDeployment } from "./clock.ts";
import type { Bench, Size, Workload } from "./workload.ts";

/**
 * The jobs of one request: above 1, POST /v1/jobs/batch. The slowest rate is held for longer, because the clock is told once a minute
 * that there is work, and visits the database 15 s after that minute.
 */
const rates = [
  { perSecond: 1, batch: 1, seconds: { full: 80, quick: 5, smoke: 1 } },
  { perSecond: 100, batch: 1, seconds: { full: 30, quick: 5, smoke: 1 } },
  { perSecond: 5000, batch: 100, seconds: { full: 30, quick: 5, smoke: 1 } },
];
const doneWithinMs = 120_000;
/** More are not sent at one time, so that a slow machine gets a lower rate and not a pile of requests. */
const maxOpenRequests = 50;

export const ratesWorkload: Workload = {
  name: "rates",
  about:
    "Worker and clock in workerd: round trips and calls of the clock a job at 1, 100 and 5,000 enqueues/s",
  async run(bench) {
    const system = bench.systems.find(({ name }) => name === "sluice");
    if (!system) return;
    for (const rate of rates)
      await bench.stage.withDatabase(system, (url) =>
        withDeployment(url, { SLUICE_MAX_DEPTH: "1000000" }, (deployment) =>
          measureRate(bench, { ...rate, ...deployment, url }),
        ),
      );
  },
};

interface Rate {
  perSecond: number;
  batch: number;
  seconds: Record<Size, number>;
  url: string;
  workerd: Workerd;
  requests(): number;
}

async function measureRate(bench: Bench, rate: Rate): Promise<void> {
  const { perSecond, batch, seconds, url, workerd, requests } = rate;
  const clockCalls = async () => {
    const response = await fetch(new URL("/simulated", workerd.url));
    return callsOf((await response.json()) as ClockStatus);
  };
  const callsBefore = await clockCalls();
  await enqueue(workerd, batch); // warm. The clock is told now that there is work.
  await untilDone(url, batch);
  const before = { requests: requests(), ms: performance.now() };
  const jobs = Math.max(perSecond * seconds[bench.size], batch);
  const enqueuedMs = await enqueueAt(rate, jobs);
  await untilDone(url, jobs + batch);
  const doneMs = performance.now() - before.ms;
  const trips = (requests() - before.requests) / jobs;
  const calls = ((await clockCalls()) - callsBefore) / jobs;
  const at = `at ${perSecond} jobs/s`;
  recordOwn(bench, "rates", `round trips a job ${at}`, "requests", trips);
  recordOwn(bench, "rates", `calls of the clock a job ${at}`, "calls", calls);
  bench.record({
    ...{
      workload: "rates",
      system: "sluice",
      what: `enqueued ${at} asked for`,
      unit: "jobs/s",
      better: "more",
    },
    value: (jobs / enqueuedMs) * 1000,
  });
  bench.record({
    ...{
      workload: "rates",
      system: "sluice",
      what: `completed ${at} asked for`,
      unit: "jobs/s",
      better: "more",
    },
    value: (jobs / doneMs) * 1000,
  });
  bench.progress(
    `${at}  ${trips.toFixed(3)} round trips and ${calls.toFixed(4)} calls of the clock a job; enqueued ` +
      `${((jobs / enqueuedMs) * 1000).toFixed(0)}/s for ${(enqueuedMs / 1000).toFixed(0)} s, completed ${((jobs / doneMs) * 1000).toFixed(0)}/s`,
  );
}

function enqueue(workerd: Workerd, batch: number): Promise<void> {
  const job = { type: "echo", payload: { text: "x".repeat(80) } };
  if (batch === 1) return send(workerd, "/v1/jobs", job);
  return send(workerd, "/v1/jobs/batch", { jobs: Array.from({ length: batch }, () => job) });
}

/** Answers how many milliseconds it took. */
async function enqueueAt({ workerd, perSecond, batch }: Rate, jobs: number): Promise<number> {
  const everyMs = (1000 * batch) / perSecond;
  const startedMs = performance.now();
  const open = new Set<Promise<void>>();
  for (let sent = 0; sent < jobs / batch; sent++) {
    await sleep(Math.max(startedMs + sent * everyMs - performance.now(), 0));
    if (open.size >= maxOpenRequests) await Promise.race(open);
    const request = enqueue(workerd, batch).finally(() => open.delete(request));
    open.add(request);
  }
  await Promise.all(open);
  return performance.now() - startedMs;
}

async function untilDone(url: string, jobs: number): Promise<void> {
  const client = await connect(url);
  const giveUpMs = performance.now() + doneWithinMs;
  for (;;) {
    const { rows } = await client.query(
      "select coalesce(sum(pending + leased), 0)::int as left, coalesce(sum(enqueued), 0)::int as enqueued from sluice.books",
    );
    if (rows[0].left === 0 && rows[0].enqueued >= jobs) return client.end();
    if (performance.now() > giveUpMs) throw new Error(`${rows[0].left} jobs were left`);
    await sleep(50);
  }
}
