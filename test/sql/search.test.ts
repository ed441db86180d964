// search: pages that stop after a number of rows still show every job that fits exactly once, whatever was folded, and a page
// costs about the same for any number of other jobs.
import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type JobStatus, jobStatuses } from "../../src/core/job.ts";
import type { JobFilter } from "../../src/core/job-search.ts";
import { cancel, foldLedger, listJobs, prune } from "../../src/core/sql/index.ts";
import { compile } from "../../src/core/sql/statement.ts";
import { measure } from "../support/explain.ts";
import { createRandom } from "../support/seeded-random.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const fold = () => db.run(foldLedger({ limit: 100_000 }));

interface Page {
  ids: string[];
  searched_to: string | null;
}

async function searchPage(filter: Partial<JobFilter>, budget: number): Promise<Page> {
  const { types = null, status = null, queue: name = null, tag = null, before = null } = filter;
  const keys = [filter.partitionKey ?? null, filter.fairKey ?? null, filter.idempotencyKey ?? null];
  const values = [types, status, name, tag, ...keys, filter.since ?? null, filter.until ?? null, before];
  const { rows } = await db.pool.query<Page>(
    "select * from sluice.search_jobs($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    [...values, filter.limit ?? 7, budget],
  );
  return rows[0] ?? { ids: [], searched_to: null };
}

/** All pages, each with so many rows to look at. */
async function searchAll(filter: Partial<JobFilter>, budget: number): Promise<string[]> {
  const found: string[] = [];
  let before: string | undefined;
  for (let pages = 0; pages < 2_000; pages++) {
    const page = await searchPage({ ...filter, before }, budget);
    found.push(...page.ids);
    if (page.searched_to === null) return found;
    if (before !== undefined) expect(page.searched_to < before).toBe(true);
    before = page.searched_to;
  }
  throw new Error("the search did not end");
}

async function expected(filter: Partial<JobFilter>): Promise<string[]> {
  const { types = null, status = null, queue: name = null, tag = null } = filter;
  const rows = await queue.query<{ id: string }>(
    `select id from sluice.jobs
     where ($1::text[] is null or type = any($1)) and ($2::text is null or status = $2) and ($3::text is null or queue = $3)
       and ($4::text is null or tags @> array[$4]) and ($5::text is null or partition_key = $5)
       and ($6::text is null or fair_key = $6) and ($7::timestamptz is null or created_at >= $7)
       and ($8::timestamptz is null or created_at < $8)
     order by id desc`,
    [
      ...[types, status, name, tag, filter.partitionKey ?? null, filter.fairKey ?? null],
      ...[filter.since ?? null, filter.until ?? null],
    ],
  );
  return rows.map(({ id }) => id);
}

const types = ["a", "b", "rare"];
const queues = ["default", "other"];

/** Jobs in every status, some of them folded. The ids of one run lie some seconds apart, so spans are made by hand. */
async function fillAtRandom(random: () => number): Promise<void> {
  const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)] as T;
  for (let round = 0; round < 6; round++) {
    const name = pick(queues);
    await queue.enqueue(
      ...times(10 + Math.floor(random() * 20), () => ({
        ...{ type: random() < 0.05 ? "rare" : pick(types.slice(0, 2)), queue: name },
        ...(random() < 0.3 && { tags: ["x"] }),
        ...(random() < 0.2 && { delaySeconds: 600 }),
        ...(random() < 0.3 && { partitionKey: pick(["k1", "k2"]) }),
      })),
    );
    if (random() < 0.5) await fold();
    const jobs = await queue.claim({ queue: name, types, limit: 12 });
    await queue.settle(jobs.slice(0, 5), complete);
    await queue.settle(jobs.slice(5, 8), { kind: "bury", message: "no" });
    const [waiting] = await queue.query<{ id: string }>("select id from sluice.ready where lane > 0 limit 1");
    if (waiting) await db.run(cancel(waiting.id));
    if (random() < 0.5) await fold();
  }
}

test("bounded pages show each job that fits exactly once, newest first, for every filter", async () => {
  const random = createRandom(17).next;
  for (let run = 0; run < 3; run++) {
    await emptyQueue(db.pool);
    await fillAtRandom(random);
    const [middle] = await queue.query<{ at: Date }>(
      "select created_at as at from sluice.jobs order by id offset 40 limit 1",
    );
    const filters: Partial<JobFilter>[] = [
      {},
      ...[...jobStatuses].map((status: JobStatus) => ({ status })),
      ...[...jobStatuses].map((status: JobStatus) => ({ status, types: ["a"] })),
      ...[...jobStatuses].map((status: JobStatus) => ({ status, queue: "other", types: ["b"] })),
      ...[{ types: ["rare"] }, { queue: "other" }, { types: ["none"] }, { types: [] }, { tag: "x" }],
      ...[{ tag: "x", status: "pending" as const }, { tag: "x", types: ["a"] }, { tag: "none" }],
      ...[{ partitionKey: "k1" }, { partitionKey: "k2", status: "completed" as const }, { fairKey: "none" }],
      ...[{ partitionKey: "k1", queue: "other", tag: "x" }, { since: middle?.at }, { until: middle?.at }],
      ...[
        { since: middle?.at, status: "completed" as const },
        { until: middle?.at, types: ["rare", "a"] },
      ],
    ];
    for (const filter of filters)
      for (const budget of [1, 30, 20_000])
        expect([filter, budget, await searchAll(filter, budget)]).toEqual([
          filter,
          budget,
          await expected(filter),
        ]);
  }
});

test("the same holds for jobs of many hours, of which only the spans of their lanes are read", async () => {
  await queue.query(
    `with lane as materialized (
       select type, sluice.lane_of('default', type, 5::smallint) as lane from unnest(array['a', 'b', 'rare']) as type
     ),
     made as materialized (
       select (left(sluice.id_at(at)::text, 14) || '7000-8000-' || right(gen_random_uuid()::text, 12))::uuid as id, lane, at, n
       from generate_series(1, 400) as n,
       lateral (select now() - interval '1 minute' - floor(random() * 60) * interval '11 minutes' as at) as made_at,
       lateral (select lane from lane where type = case when n % 40 = 0 then 'rare' when n % 3 = 0 then 'a' else 'b' end) as of_type
     ),
     stored as (insert into sluice.job (id, lane, max_attempts, payload) select id, lane, 5, '{}' from made),
     completed as (
       insert into sluice.done (hi_id, lo_id, started_at, finished_at, lane, ids)
       select ids[cardinality(ids)], ids[1], at, at, lane, ids
       from (select array_agg(id order by id) as ids, lane, at from made where n % 5 > 0 group by lane, at, n % 2) as packed
     ),
     cancelled as (
       insert into sluice.closed (id, status, closed_at, lane, attempt, abandonments)
       select id, 'cancelled', now(), lane, 0, 0 from made where n % 5 = 0
     ),
     booked as (
       insert into sluice.tally
       select '-infinity', lane, count(*), 0, 0, 0, count(*) filter (where n % 5 > 0), 0, 0, 0, count(*) filter (where n % 5 = 0), 0
       from made group by lane
     ),
     marked as (insert into sluice.lane_span values (0, now() - interval '2 days', now()))
     insert into sluice.lane_span select lane, at, at + interval '1 minute' from made group by lane, at`,
  );
  const filters: Partial<JobFilter>[] = [
    ...[{}, { types: ["rare"] }, { types: ["a"] }, { queue: "default" }, { status: "completed" as const }],
    ...(["completed", "cancelled", "pending"] as const).flatMap((status) => [
      { status, types: ["rare"] },
      { status, types: ["a", "rare"] },
      { status, queue: "default" },
    ]),
  ];
  for (const filter of filters)
    for (const budget of [1, 100, 20_000])
      expect([filter, budget, await searchAll(filter, budget)]).toEqual([
        filter,
        budget,
        await expected(filter),
      ]);
  const [wrong] = await queue.query<{ spans: number }>(
    "delete from sluice.lane_span where lane = (select lane from sluice.lane where type = 'rare') returning 1 as spans",
  );
  expect(wrong?.spans).toBe(1);
  expect(await searchAll({ types: ["rare"] }, 100)).toEqual([]); // so the spans were what it read by
});

describe("spans", () => {
  const spans = () =>
    queue.query<{ type: string; spans: number }>(
      `select type, count(*)::int as spans from sluice.lane_span join sluice.lane using (lane) group by type order by type`,
    );

  test("a lane that is in use all the time has one, and a rare one has one for each time", async () => {
    for (let minute = 30; minute > 0; minute--) {
      await queue.enqueueOne({ type: "busy" });
      if (minute % 10 === 0) await queue.enqueueOne({ type: "rare" });
      // As if the fold had run a minute after the jobs.
      await queue.query("update sluice.ledger set at = now() - $1 * interval '1 minute'", [minute]);
      await fold();
      await queue.query(
        "update sluice.lane_span set until = now() - $1 * interval '1 minute' where until > now() - interval '20 s' and lane > 0",
        [minute - 1],
      );
    }
    expect(await spans()).toEqual([
      { type: "busy", spans: 1 },
      { type: "rare", spans: 3 },
    ]);
  });

  test("a job whose transaction began long before is found, also after the fold", async () => {
    await fold();
    await queue.enqueueOne({ type: "busy" });
    const client = await db.pool.connect();
    await client.query("begin");
    await client.query("select now()");
    await queue.query("select pg_sleep(0.05)");
    const { rows } = await client.query("select sluice.enqueue('late') as id");
    await fold();
    expect(await searchAll({ types: ["late"] }, 100)).toEqual([]);
    await client.query("commit");
    client.release();
    expect(await searchAll({ types: ["late"] }, 100)).toEqual([rows[0].id]);
    await fold();
    expect(await searchAll({ types: ["late"] }, 100)).toEqual([rows[0].id]);
  });

  test("prune removes those that are older than the oldest job, and only those", async () => {
    await fold();
    await queue.enqueueOne({ type: "kept" });
    await fold();
    await queue.query(
      `insert into sluice.lane_span select lane, now() - interval '9 days', now() - interval '8 days' from sluice.lane`,
    );
    await db.run(prune({ limit: 1000 }));
    expect(await spans()).toEqual([{ type: "kept", spans: 1 }]);
    expect(await searchAll({ types: ["kept"] }, 100)).toHaveLength(1);
  });
});

test("an idempotency key finds its job, if that fits the other filters", async () => {
  const id = await queue.enqueueOne({ idempotencyKey: "order 7", type: "a" });
  expect((await searchPage({ idempotencyKey: "order 7" }, 100)).ids).toEqual([id]);
  expect((await searchPage({ idempotencyKey: "order 7", types: ["a"], status: "pending" }, 100)).ids).toEqual(
    [id],
  );
  expect((await searchPage({ idempotencyKey: "order 7", types: ["b"] }, 100)).ids).toEqual([]);
  expect((await searchPage({ idempotencyKey: "order 8" }, 100)).ids).toEqual([]);
});

describe("among ten times as many other jobs", () => {
  const client = new pg.Client({ connectionString: db.url });
  beforeAll(() => client.connect());
  afterAll(() => client.end());

  /** Jobs that completed alone, as a queue of slow jobs has them, two hours old and older. */
  async function addOthers(count: number): Promise<void> {
    await queue.query(
      `with lane as materialized (select sluice.lane_of('default', 'common', 5::smallint) as lane),
       new as (
         insert into sluice.job (id, lane, max_attempts, payload)
         select (left(sluice.id_at(now() - interval '2 hours' - random() * interval '10 hours')::text, 14) || '7000-8000-'
                 || right(gen_random_uuid()::text, 12))::uuid, lane, 5, '{}'
         from lane, generate_series(1, $1::int) as n
         returning id, lane
       ),
       booked as (
         insert into sluice.ledger (at, lane, enqueued, completed, pending)
         select now() - interval '12 hours', lane, $1, $1, 0 from lane
       )
       insert into sluice.done (hi_id, lo_id, started_at, finished_at, lane, ids)
       select id, id, now(), now(), lane, array[id] from new`,
      [count],
    );
    await fold();
  }

  const filters: [string, Partial<JobFilter>][] = [
    ["a rare type", { types: ["rare"] }],
    ["a rare type, completed", { types: ["rare"], status: "completed" }],
    ["a rare queue", { queue: "rare" }],
    ["pending of an empty queue", { queue: "default", status: "pending" }],
    ["a type without jobs", { types: ["none"] }],
    ["a partition key", { partitionKey: "p" }],
    ["a part of the time", { since: new Date(Date.now() - 3_600_000) }],
  ];
  test.each(filters)("the list of %s touches as many buffers as before", async (_, filter) => {
    await fold();
    await queue.query("update sluice.lane_span set since = now() - interval '1 day' where lane = 0");
    const rare = await queue.enqueueOne({ type: "rare", queue: "rare", partitionKey: "p" });
    await queue.settle(await queue.claim({ queue: "rare", types: ["rare"] }), complete);
    await fold();
    const { text, values } = compile(listJobs({ limit: 20, ...filter }));
    const buffers: number[] = [];
    for (const count of [2_000, 18_000]) {
      await addOthers(count);
      await queue.query(
        "vacuum analyze sluice.job, sluice.done, sluice.ledger, sluice.lane_span, sluice.history",
      );
      for (let warmUp = 0; warmUp < 6; warmUp++) await client.query(text, values);
      buffers.push((await measure(client, text, values)).buffers);
    }
    const [small = 0, large = 0] = buffers;
    expect(large, buffers.join(", ")).toBeLessThan(small * 1.3 + 40);
    const isFound = !filter.types?.includes("none") && filter.status !== "pending";
    expect((await db.run(listJobs({ limit: 20, ...filter }))).jobs.some(({ id }) => id === rare)).toBe(
      isFound,
    );
  });
});
