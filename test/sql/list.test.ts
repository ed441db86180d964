// find and list: every job is shown exactly once, whatever table it is in.
import { beforeEach, describe, expect, test } from "vitest";
import type { JobStatus, NewJob } from "../../src/core/job.ts";
import type { JobFilter } from "../../src/core/job-search.ts";
import { cancel, discard, findJob, listDeadLetters, listJobs, replay } from "../../src/core/sql/index.ts";
import type { DeadLetterPage } from "../../src/core/sql/list.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { complete, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const list = async (filter: Partial<JobFilter> = {}) =>
  (await db.run(listJobs({ limit: 100, ...filter }))).jobs.map((job) => job.id);

/** One job in each status, and a scheduled one. */
async function oneOfEach(fields = {}): Promise<Record<JobStatus, string[]>> {
  const completed = await queue.enqueueOne(fields);
  await queue.settle([await queue.claimOne()], { kind: "complete", output: "done" });
  const dead = await queue.buryOne(fields);
  const discarded = await queue.buryOne(fields);
  await db.run(discard("ann", { id: discarded }));
  const cancelled = await queue.enqueueOne(fields);
  await db.run(cancel(cancelled));
  const blocked = await queue.enqueueOne(fields);
  const wait = { signal: { name: "go", key: "1" } };
  await queue.settle([await queue.claimOne()], { kind: "suspend", wait });
  const processing = await queue.enqueueOne(fields);
  await queue.claimOne();
  const ready = await queue.enqueueOne(fields);
  const scheduled = await queue.enqueueOne({ ...fields, delaySeconds: 60 });
  const waiting = await queue.enqueueOne({ ...fields, after: [scheduled] });
  return {
    completed: [completed],
    dead: [dead],
    discarded: [discarded],
    cancelled: [cancelled],
    blocked: [waiting, blocked],
    processing: [processing],
    pending: [scheduled, ready],
  };
}

describe("find", () => {
  test("answers with nothing for a job that does not exist", async () => {
    expect(await db.run(findJob("01900000-0000-7000-8000-000000000000"))).toBeUndefined();
  });

  test("finds a job in each status", async () => {
    for (const [status, ids] of Object.entries(await oneOfEach()))
      for (const id of ids) expect(await queue.find(id)).toMatchObject({ id, status });
  });

  test("finds each job of a batch that was settled together", async () => {
    const jobs = await queue.enqueue(...times(100, () => ({})));
    await queue.settle(await queue.claim(), complete);
    for (const { id } of jobs)
      expect(await queue.find(id)).toMatchObject({ id, status: "completed", attempts: 1 });
  });
});

describe("list", () => {
  test("leaves out the canaries, unless the filter names them", async () => {
    const own = await queue.enqueueOne();
    const canary = await queue.enqueueOne({ queue: "sluice", type: "sluice.canary" });
    expect(await list()).toEqual([own]);
    expect(await list({ status: "pending" })).toEqual([own]);
    expect(await list({ queue: "sluice" })).toEqual([canary]);
    expect(await list({ types: ["sluice.canary"] })).toEqual([canary]);
  });

  test("filters by status", async () => {
    const jobs = await oneOfEach({ tags: ["x"] });
    for (const [status, ids] of Object.entries(jobs)) {
      expect([status, await list({ status: status as JobStatus })]).toEqual([status, ids]);
      expect(await list({ status: status as JobStatus, types: ["echo"] })).toEqual(ids);
      expect(await list({ status: status as JobStatus, queue: "default" })).toEqual(ids);
      expect(await list({ status: status as JobStatus, tag: "x" })).toEqual(ids);
      expect(await list({ status: status as JobStatus, types: ["other"] })).toEqual([]);
    }
    expect(await list()).toEqual(Object.values(jobs).flat().toSorted().toReversed());
  });

  test("filters by type, queue and tag, and by all of them", async () => {
    const [a, b, c, d] = (
      await queue.enqueue(
        { type: "mail", queue: "q1", tags: ["x", "y"] },
        { type: "mail", queue: "q2", tags: ["x"] },
        { type: "index", queue: "q1", tags: ["y"] },
        { type: "index", queue: "q2" },
      )
    ).map((job) => job.id);
    expect(await list({ types: ["mail"] })).toEqual([b, a]);
    expect(await list({ queue: "q1" })).toEqual([c, a]);
    expect(await list({ tag: "y" })).toEqual([c, a]);
    expect(await list({ types: ["index"], queue: "q2" })).toEqual([d]);
    expect(await list({ types: ["mail"], queue: "q1", tag: "x", status: "pending" })).toEqual([a]);
    expect(await list({ tag: "z" })).toEqual([]);
    expect(await list({ types: ["none"] })).toEqual([]);
  });

  const filters: [string, Partial<JobFilter>][] = [
    ["no filter", {}],
    ["a type", { types: ["echo"] }],
    ["a queue", { queue: "default" }],
    ["a tag", { tag: "x" }],
    ["pending", { status: "pending" }],
    ["completed", { status: "completed" }],
    ["processing", { status: "processing" }],
    ["dead", { status: "dead", types: ["echo"] }],
  ];
  test.each(filters)("shows 250 jobs in pages, newest first, each exactly once: %s", async (_, filter) => {
    const ids = (await queue.enqueue(...times(250, (n) => ({ tags: ["x"], delaySeconds: n % 2 })))).map(
      (job) => job.id,
    );
    await queue.query("update sluice.scheduled set run_at = now() - interval '1 second'");
    await queue.query("select sluice.reset_cursors()");
    if (filter.status && filter.status !== "pending") {
      const claimed = await queue.claim({ limit: 250 });
      if (filter.status === "completed") await queue.settle(claimed, complete);
      if (filter.status === "dead") await queue.settle(claimed, { kind: "bury", message: "" });
    }
    const seen: string[] = [];
    const sizes: number[] = [];
    for (
      let page = await list(filter);
      page.length > 0;
      page = await list({ ...filter, before: seen.at(-1) })
    ) {
      seen.push(...page);
      sizes.push(page.length);
      await queue.enqueue({ tags: ["x"] }); // new jobs do not move the pages
    }
    expect(sizes).toEqual([100, 100, 50]);
    expect(seen).toEqual(ids.toReversed());
  });
});

describe("the view sluice.jobs", () => {
  test("has one row for each job, with its status and times", async () => {
    const jobs = await oneOfEach({ tags: ["x", "y"] });
    const rows = await queue.query<{ id: string; status: string }>(
      "select id, status, completed_at is not null as is_completed, closed_at is not null as is_closed from sluice.jobs",
    );
    const expected = Object.entries(jobs).flatMap(([status, ids]) =>
      ids.map((id) => ({
        ...{ id, status },
        is_completed: status === "completed",
        is_closed: ["dead", "discarded", "cancelled"].includes(status),
      })),
    );
    const byId = (a: { id: string }, b: { id: string }) => a.id.localeCompare(b.id);
    expect(rows.toSorted(byId)).toEqual(expected.toSorted(byId));
  });

  test("has one row for a job with several errors, several earlier batches and a split lease", async () => {
    for (let n = 0; n < 3; n++) {
      await queue.enqueue(...times(5, () => ({})));
      await queue.settle(await queue.claim({ limit: 4 }), { kind: "retry", message: "", retryInSeconds: 0 });
      await queue.settle(await queue.claim({ limit: 3 }), complete);
    }
    const jobs = await queue.claim({ limit: 3 });
    await queue.query("select * from sluice.extend($1, $2, 600)", [[jobs[0]?.id], [jobs[0]?.leaseKey]]);
    const rows = await queue.query(
      "select count(*)::int as rows, count(distinct id)::int as jobs from sluice.jobs",
    );
    expect(rows).toEqual([{ rows: 15, jobs: 15 }]);
  });
});

describe("a list of dead letters", () => {
  const pageOf = (filter: Partial<DeadLetterPage> = {}) => db.run(listDeadLetters({ limit: 100, ...filter }));
  const listDead = async (filter: Partial<DeadLetterPage> = {}) =>
    (await pageOf(filter)).map(({ job }) => job.id);

  async function bury(count: number, fields: Partial<NewJob> = {}): Promise<string[]> {
    const ids: string[] = [];
    for (let n = 0; n < count; n++) ids.push(await queue.buryOne(fields));
    return ids;
  }

  test("has only dead jobs, newest first, each with all its errors", async () => {
    const ids = await bury(3);
    await queue.enqueueOne();
    const [discarded = ""] = await bury(1, { type: "other" });
    await db.run(discard("ann", { id: discarded }));
    expect(await listDead()).toEqual(ids.toReversed());
    const [newest] = await db.run(listDeadLetters({ limit: 1 }));
    expect(newest?.job).toMatchObject({
      status: "dead",
      deadReason: "fatal",
      errors: [{ message: "no use" }],
    });
  });

  test("can be filtered by type and reason", async () => {
    const [echo] = await bury(1);
    const [other] = await bury(1, { type: "other" });
    const exhausted = await queue.enqueueOne({ maxAttempts: 1 });
    await queue.settle([await queue.claimOne()], { kind: "retry", message: "busy" });
    expect(await listDead({ type: "other" })).toEqual([other]);
    expect(await listDead({ reason: "exhausted" })).toEqual([exhausted]);
    expect(await listDead({ type: "echo", reason: "fatal" })).toEqual([echo]);
    expect(await listDead({ type: "nobody" })).toEqual([]);
  });

  test("comes in pages without gaps, while jobs die and are replayed", async () => {
    const ids = await bury(7);
    const first = await pageOf({ limit: 3 });
    await bury(1);
    await db.run(replay("ann", { id: first.at(-1)?.job.id ?? "" }));
    const second = await pageOf({ before: first.at(-1)?.position, limit: 3 });
    const third = await pageOf({ before: second.at(-1)?.position, limit: 3 });
    expect([...first, ...second, ...third].map(({ job }) => job.id)).toEqual(ids.toReversed());
  });
});
