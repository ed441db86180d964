// GET /v1/stats: the numbers behind the dashboard.
import { afterEach, expect, test } from "vitest";
import * as z from "zod";
import { jobTypesResponse, queueDetailResponse } from "../../src/contract/admin.ts";
import { listResponse } from "../../src/contract/jobs.ts";
import { roundPage, statsResponse } from "../../src/contract/stats.ts";
import { defineJob, FatalError } from "../../src/index.ts";
import { adminCallsOf, refusal } from "./admin-calls.ts";
import { useDeployment } from "./deployment.ts";

const deployment = useDeployment([
  defineJob("order", {
    payload: z.object({ passes: z.boolean() }),
    timeoutSeconds: 10,
    run: ({ passes }) => {
      if (!passes) throw new FatalError("not this one");
    },
  }),
]);
const { enqueueMany, fire } = deployment;
const { ask, send } = adminCallsOf(deployment);
afterEach(() => deployment.quiet());

/** By SQL, so that nothing starts them. */
async function put(fields: object, count = 1): Promise<string[]> {
  const jobs = Array.from({ length: count }, () => ({
    type: "order",
    payload: {},
    queue: "rush",
    ...fields,
  }));
  const rows = await deployment.query<{ id: string }>(
    "select job ->> 'id' as id from json_array_elements(sluice.enqueue_jobs($1)) as job",
    [JSON.stringify(jobs)],
  );
  return rows.map(({ id }) => id);
}

async function bury(count: number): Promise<void> {
  await enqueueMany(
    "order",
    Array.from({ length: count }, () => ({ passes: false })),
    { queue: "default" },
  );
  await fire();
}

test("stats have the books by queue and type, the oldest waiting jobs and the last rounds", async () => {
  await bury(2);
  await enqueueMany("order", [{ passes: true }], { queue: "rush" });
  const stats = await ask("GET /v1/stats", statsResponse);
  expect(stats.totals).toMatchObject({ enqueued: 3, dead: 2, pending: 1 });
  expect(stats.books).toMatchObject([
    { queue: "default", type: "order", books: { enqueued: 2, dead: 2 } },
    { queue: "rush", type: "order", books: { enqueued: 1, pending: 1 } },
  ]);
  expect(stats.rounds).toMatchObject([{ kind: "drain", queue: "default", claimed: 2, reason: "empty" }]);
  expect(stats.oldest_due_seconds).toBeGreaterThan(0);
  const sum = (entry: "enqueued" | "failed") =>
    stats.minutes.reduce((total, minute) => total + minute[entry], 0);
  expect([sum("enqueued"), sum("failed")]).toEqual([3, 2]);
});

test("stats have no history unless the request names a range", async () => {
  expect(await ask("GET /v1/stats", statsResponse)).not.toHaveProperty("history");
});

test.each([
  ["30m", 30, 1],
  ["3h", 36, 5],
  ["24h", 48, 30],
])(
  "the history of %s has %i buckets of %i minutes for all jobs and for each queue",
  async (range, buckets, minutes) => {
    await bury(2);
    await enqueueMany("order", [{ passes: true }], { queue: "rush" });
    const { history } = await ask(`GET /v1/stats?range=${range}`, statsResponse);
    expect(history).toMatchObject({ range, minutes, gaps: expect.any(Array), marks: expect.any(Array) });
    expect(history?.starts).toHaveLength(buckets);
    expect(history?.queues.map(({ queue }) => queue)).toEqual(["default", "rush"]);
    const sum = (series: (number | null)[] | undefined) =>
      series?.reduce<number>((total, value) => total + (value ?? 0), 0);
    expect(sum(history?.total.enqueued)).toBe(3);
    expect(sum(history?.total.died)).toBe(2);
    expect(sum(history?.queues[0]?.died)).toBe(2);
    expect(history?.total.due.at(-1)).toBe(1);
    for (const series of Object.values(history?.total ?? {})) expect(series).toHaveLength(buckets);
  },
);

test("another range, or another parameter, is a 400 that names it", async () => {
  expect(await refusal(await send("GET /v1/stats?range=1h"))).toEqual({ status: 400, paths: ["range"] });
  expect(await refusal(await send("GET /v1/stats?rnage=3h"))).toMatchObject({ status: 400 });
});

test("a type shows what it did in the last hour", async () => {
  await bury(2);
  await enqueueMany("order", [{ passes: true }], { queue: "default" });
  await fire();
  await deployment.query("select sluice.fold_ledger(1000)");
  const { job_types } = await ask("GET /v1/admin/job-types", jobTypesResponse);
  expect(job_types.find(({ type }) => type === "order")).toMatchObject({
    ...{ paused: false, paused_since: null, breaker: { state: "closed", opened_at: null }, in_use: null },
    last_hour: {
      ...{ enqueued: 3, completed: 1, failed: 2, retried: 0, died: 2, failure_rate: 2 / 3 },
      ...{ waiting: { jobs: 3 }, processing: { jobs: 1 } },
    },
  });
});

test("a queue shows its priorities and its keys with the most waiting jobs", async () => {
  await put({ partition_key: "a", priority: 9 }, 3);
  await put({ partition_key: "b", priority: 9 });
  const queue = await ask("GET /v1/admin/queues/rush", queueDetailResponse);
  expect(queue).toMatchObject({
    ...{ queue: "rush", paused: false, books: { pending: 4 }, blocked_partitions: 0 },
    priorities: [{ priority: 9, pending: 4, scheduled: 0 }],
    top_keys: {
      looked: 4,
      keys: [
        { kind: "partition", key: "a", waiting: 3, running: 0, share: 0.75 },
        { kind: "partition", key: "b", waiting: 1, share: 0.25 },
      ],
    },
  });
  expect(await refusal(await send("GET /v1/admin/queues/nothing"))).toMatchObject({ status: 404 });
});

test("rounds are listed in pages, and by kind", async () => {
  await bury(1);
  await deployment.query("select sluice.record_round('reap', null, 5, '{}')");
  const first = await ask("GET /v1/admin/rounds?limit=1", roundPage);
  expect(first.rounds).toMatchObject([{ kind: "reap", reason: "done" }]);
  const second = await ask(`GET /v1/admin/rounds?limit=1&cursor=${first.next_cursor}`, roundPage);
  expect(second.rounds).toMatchObject([{ kind: "drain", queue: "default", claimed: 1 }]);
  expect((await ask("GET /v1/admin/rounds?kind=reap", roundPage)).rounds).toHaveLength(1);
  expect(await refusal(await send("GET /v1/admin/rounds?kind=nap"))).toEqual({
    status: 400,
    paths: ["kind"],
  });
});

test("jobs are listed by key and by time", async () => {
  const [keyed] = await put({ partition_key: "a" });
  const [plain] = await put({ idempotency_key: "k 1" });
  const list = async (query: string) =>
    (await ask(`GET /v1/jobs?${query}`, listResponse)).jobs.map(({ job_id }) => job_id);
  const later = new Date(Date.now() + 60_000).toISOString();
  expect(await list("partition_key=a")).toEqual([keyed]);
  expect(await list("partition_key=a&status=completed")).toEqual([]);
  expect(await list("fair_key=a")).toEqual([]);
  expect(await list("idempotency_key=k%201")).toEqual([plain]);
  expect(await list(`until=${later}`)).toEqual([plain, keyed]);
  expect(await list(`since=${later}`)).toEqual([]);
  expect(await refusal(await send("GET /v1/jobs?since=yesterday"))).toEqual({
    status: 400,
    paths: ["since"],
  });
});

test("a search that stops early says how far it came, and its cursor goes on from there", async () => {
  await put({ tags: ["x"] });
  // More tagged jobs than one search looks up. None of them is pending.
  await deployment.query(
    `insert into sluice.job_tag
     select 'x', (left(sluice.id_at(now() + n * interval '1 s')::text, 14) || '7000-8000-' || right(gen_random_uuid()::text, 12))::uuid
     from generate_series(1, 900) as n`,
  );
  let cursor: string | null = "";
  let found = 0;
  const searched: string[] = [];
  for (let pages = 0; cursor !== null && pages < 10; pages++) {
    const page: z.output<typeof listResponse> = await ask(
      `GET /v1/jobs?tag=x&status=pending&cursor=${cursor}`,
      listResponse,
    );
    found += page.jobs.length;
    if (page.searched_back_to !== undefined) searched.push(page.searched_back_to);
    expect(page.next_cursor === null).toBe(page.searched_back_to === undefined);
    cursor = page.next_cursor;
  }
  expect([found, cursor]).toEqual([1, null]);
  expect(searched.length).toBeGreaterThan(1);
  expect(searched.toSorted().toReversed()).toEqual(searched);
  await deployment.query("delete from sluice.job_tag");
});
