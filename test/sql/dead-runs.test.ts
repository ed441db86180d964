// Runs over dead letters: each step is bounded, no job is taken twice, and all that a run knows is in its row.
import { beforeEach, describe, expect, test } from "vitest";
import type { NewDeadRun } from "../../src/core/dead-letters.ts";
import type { NewJob, Payload } from "../../src/core/job.ts";
import {
  advanceDeadRun,
  advanceDeadRuns,
  books,
  countDead,
  discard,
  findDeadRun,
  foldDeaths,
  listDeadGroups,
  listDeadRuns,
  nextDue,
  prune,
  replay,
  startDeadRun,
  stopDeadRun,
} from "../../src/core/sql/index.ts";
import { advanceRuns } from "../../src/queue/dead-runs.ts";
import { newestAudit } from "../support/audit.ts";
import { differences } from "../support/balance.ts";
import { createTestPorts } from "../support/ports.ts";
import { rewriteFunction } from "../support/rewrite-function.ts";
import { sqlState } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { only, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

/** Makes dead letters in one settle, oldest id first. */
async function bury(count: number, fields: Partial<NewJob> = {}, message = "no use"): Promise<string[]> {
  const type = fields.type ?? "echo";
  const name = fields.queue ?? "default";
  const ids = (await queue.enqueue(...times(count, () => fields))).map(({ id }) => id);
  const jobs = await queue.claim({ types: [type], queue: name, limit: 1000 });
  await queue.settle(jobs, { kind: "bury", message });
  return ids;
}

const start = (run: Partial<NewDeadRun> = {}) => db.run(startDeadRun("ann", { action: "replay", ...run }));
const step = (seconds = 1) => db.run(advanceDeadRuns({ seconds }));
async function finish(id: string) {
  for (let steps = 0; steps < 100 && (await step()); steps++);
  const run = await db.run(findDeadRun(id));
  if (!run) throw new Error("the run is gone");
  return run;
}
const statusOf = async (id: string) => (await queue.find(id)).status;
const statuses = async (ids: readonly string[]) => await Promise.all(ids.map(statusOf));
/** As if so much time had passed for the runs. */
const pass = (seconds: number) =>
  queue.query(`update sluice.dead_run set next_at = next_at - interval '${seconds} s'`);

describe("a run", () => {
  test("replays all that match, and only these", async () => {
    const wanted = await bury(3, { queue: "heavy" }, "user 1 is unknown");
    await bury(1, { queue: "heavy" }, "other");
    await bury(1, {}, "user 2 is unknown");
    await bury(1, { type: "other", queue: "heavy" }, "user 3 is unknown");
    const { groups } = await db.run(listDeadGroups({ type: "echo", queue: "heavy", limit: 1 }));
    const filter = {
      type: "echo",
      queue: "heavy",
      reason: "fatal",
      fingerprint: groups[0]?.fingerprint,
    } as const;
    expect((await db.run(countDead(filter))).dead).toBe(3);
    const run = await start({ ...filter, note: "fixed" });
    expect(run).toMatchObject({
      ...filter,
      action: "replay",
      state: "running",
      matched: 3,
      done: 0,
      remaining: 3,
    });
    expect(run).toMatchObject({ actor: "ann", note: "fixed" });
    expect(await step()).toEqual({ runId: run.id, queues: ["heavy"], check: null });
    expect(await db.run(findDeadRun(run.id))).toMatchObject({ state: "done", done: 3, remaining: 0 });
    expect(await statuses(wanted)).toEqual(["pending", "pending", "pending"]);
    expect(await queue.count("closed")).toBe(3);
    expect(await step()).toBeNull();
    expect(await differences(queue)).toEqual([]);
  });

  test("discards all that match, and gives the turns of blocked keys back", async () => {
    await bury(1, { partitionKey: "k", queue: "heavy" });
    const behind = await queue.enqueueOne({ partitionKey: "k", queue: "heavy" });
    const plain = await bury(2);
    const run = await start({ action: "discard", reason: "fatal", note: "spam" });
    expect(await finish(run.id)).toMatchObject({ state: "done", matched: 3, done: 3 });
    expect(await statuses(plain)).toEqual(["discarded", "discarded"]);
    expect(await queue.claimOne({ queue: "heavy", run: 1 })).toMatchObject({ id: behind });
    expect(await differences(queue)).toEqual([]);
  });

  test("takes no job that died after it was started, also not one that dies again", async () => {
    const [first = ""] = await bury(1);
    const run = await start();
    const [late = ""] = await bury(1);
    await step();
    await queue.settle([await queue.claimOne()], { kind: "bury", message: "again" });
    expect(await finish(run.id)).toMatchObject({ state: "done", matched: 1, done: 1 });
    expect(await statuses([first, late])).toEqual(["dead", "dead"]);
  });

  test("can be limited to what had died at the time of the count, and to a number, oldest first", async () => {
    const [first = "", second = ""] = [...(await bury(1)), ...(await bury(1))];
    const { dead, at } = await db.run(countDead({}));
    await queue.query("select pg_sleep(0.005)");
    const [late = ""] = await bury(1);
    expect(await db.run(countDead({ until: at }))).toMatchObject({ dead });
    const one = await start({ maxJobs: 1 });
    expect(await finish(one.id)).toMatchObject({ matched: 1, done: 1, state: "done" });
    expect(await statuses([first, second, late])).toEqual(["pending", "dead", "dead"]);
    const rest = await start({ until: at });
    expect(await finish(rest.id)).toMatchObject({ matched: 1, done: 1 });
    expect(await statuses([second, late])).toEqual(["pending", "dead"]);
  });

  test("ends at once if nothing matches", async () => {
    const run = await start({ type: "nobody" });
    expect(run).toMatchObject({ matched: 0 });
    expect(await finish(run.id)).toMatchObject({ state: "done", done: 0, remaining: 0 });
  });

  test("leaves entries in the audit when it is started, stopped and done", async () => {
    await bury(2);
    const run = await start({ type: "echo", note: "why" });
    expect(await newestAudit(db)).toMatchObject({
      ...{ actor: "ann", action: "replay run", target: `run ${run.id}`, before: null },
      after: { type: "echo", matched: 2, note: "why" },
    });
    await db.run(stopDeadRun("bob", run.id));
    expect(await newestAudit(db)).toMatchObject({
      ...{ actor: "bob", action: "stop run", before: { state: "running" } },
      after: { state: "stopped", done: 0, remaining: 2 },
    });
    const next = await start();
    await finish(next.id);
    expect(await newestAudit(db)).toMatchObject({ actor: "ann", action: "end run", after: { done: 2 } });
  });

  test("that is stopped leaves the rest dead, and cannot be stopped twice", async () => {
    const ids = await bury(3);
    const run = await start({ perMinute: 60 });
    await step(0);
    const stopped = await db.run(stopDeadRun("bob", run.id));
    expect(stopped).toMatchObject({ applied: true, run: { state: "stopped", done: 1, remaining: 2 } });
    await pass(60);
    expect(await step()).toBeNull();
    expect((await statuses(ids)).filter((status) => status === "dead")).toHaveLength(2);
    expect(await db.run(stopDeadRun("bob", run.id))).toMatchObject({
      applied: false,
      run: { state: "stopped" },
    });
    expect(await db.run(stopDeadRun("bob", "999999"))).toBeNull();
  });

  test("is refused a patch without a type, and a patch of a discard", async () => {
    expect(await sqlState(start({ patch: { a: 1 } }))).toBe("23514");
    expect(await sqlState(start({ patch: { a: 1 }, type: "echo", action: "discard" }))).toBe("23514");
  });

  test("that is stopped after its first stretch leaves the rest dead", async () => {
    const ids = await bury(100);
    const run = await start({ perMinute: 600 });
    expect(await advanceRuns(createTestPorts(db, []), "paid")).toEqual(["default"]);
    expect(await queue.query("select from sluice.scheduled where run_at > now() + interval '1.1 s'")).toEqual(
      [],
    );
    const stopped = (await db.run(stopDeadRun("bob", run.id)))?.run;
    const done = stopped?.done ?? 0;
    expect(done).toBeGreaterThanOrEqual(1);
    expect(done).toBeLessThan(60); // a call takes steps for 3 s at most
    expect(await advanceRuns(createTestPorts(db, []), "paid")).toEqual([]);
    const ends = await queue.query<{ status: string }>("select status from sluice.jobs where id = any($1)", [
      ids,
    ]);
    expect(ends.filter(({ status }) => status === "dead")).toHaveLength(100 - done);
    expect(await differences(queue)).toEqual([]);
  });

  test("looks at a bounded number of dead letters in a step, and goes on where it stopped", async () => {
    const [from, to] = ["c_looked constant int := 10000", "c_looked constant int := 3"];
    await rewriteFunction(db.pool, { name: "next_dead_letters", from, to });
    await bury(5);
    const wanted = await bury(2, { type: "other" });
    await bury(4);
    const run = await start({ type: "other" });
    await step();
    expect(await db.run(findDeadRun(run.id))).toMatchObject({ state: "running", done: 0 });
    expect(await finish(run.id)).toMatchObject({ state: "done", done: 2 });
    expect(await statuses(wanted)).toEqual(["pending", "pending"]);
    await rewriteFunction(db.pool, { name: "next_dead_letters", from: to, to: from });
  });

  test("takes a bounded number of jobs in a step", async () => {
    await bury(1000);
    const all = await start();
    await step();
    expect(await db.run(findDeadRun(all.id))).toMatchObject({ state: "running", done: 1000, remaining: 0 });
    expect(await finish(all.id)).toMatchObject({ state: "done", done: 1000 });
  });

  test("is forgotten 30 days after its end", async () => {
    const { id } = await start();
    await finish(id);
    const old = "update sluice.dead_run set ended_at = now() - interval '31 days'";
    await db.run(prune({ limit: 10 }));
    expect(await queue.count("dead_run")).toBe(1);
    await queue.query(old);
    const running = await start();
    await db.run(prune({ limit: 10 }));
    expect(await db.run(listDeadRuns({ limit: 10 }))).toMatchObject([{ id: running.id }]);
  });

  test("is listed newest first, a page at a time", async () => {
    const ids = [(await start()).id, (await start()).id, (await start()).id];
    const first = await db.run(listDeadRuns({ limit: 2 }));
    const second = await db.run(listDeadRuns({ limit: 2, before: first[1]?.id }));
    expect([...first, ...second].map(({ id }) => id)).toEqual(ids.toReversed());
  });
});

describe("with a rate", () => {
  const taken = async (id: string) =>
    Number(only(await queue.query("select done from sluice.dead_run where id = $1", [id])).done);

  test("a step takes the jobs of the next seconds, each at its time", async () => {
    const ids = await bury(10);
    const run = await start({ perMinute: 12 });
    await step(20); // the jobs of 0, 5, 10, 15 and 20 seconds
    expect(await taken(run.id)).toBe(5);
    expect(await db.run(findDeadRun(run.id))).toMatchObject({ done: 1, remaining: 9 }); // the others are planned
    const times = await Promise.all(
      ids.slice(0, 5).map(async (id) => (await queue.find(id)).scheduledAt.getTime()),
    );
    const apart = times.slice(1, 4).map((time, n) => Math.round(((times[n + 2] ?? 0) - time) / 1000));
    expect(apart).toEqual([5, 5, 5]);
    expect(await queue.claim()).toHaveLength(1);
    expect(await step(20)).toBeNull(); // planned already
    await pass(20);
    await step(20);
    expect(await taken(run.id)).toBe(9);
  });

  test("the clock is told when it can go on, and time that was lost is not made up for", async () => {
    await bury(100);
    const run = await start({ perMinute: 60 });
    await step(1);
    const { dueMs } = await db.run(nextDue([]));
    expect(dueMs).toBeGreaterThan(0);
    expect(dueMs).toBeLessThan(2001);
    const before = await taken(run.id);
    await pass(3600);
    await step(1);
    expect((await taken(run.id)) - before).toBeLessThanOrEqual(4);
  });
});

describe("a payload patch", () => {
  const checked = async (skips: (payload: Payload) => string | undefined) => {
    const found = await step();
    if (!found?.check) throw new Error("nothing to check");
    const faults = found.check.jobs.flatMap(({ id, payload }) => {
      const reason = skips(payload);
      return reason ? [{ jobId: id, reason }] : [];
    });
    return db.run(advanceDeadRun(found.runId, { seconds: 1, ahead: found.check.ahead, skips: faults }));
  };

  test.each([
    ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
    ['{"a":"b"}', '{"a":null}', "{}"],
    ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
    ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
    ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
    ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
    ['{"e":null}', '{"a":1}', '{"a":1,"e":null}'],
    ["{}", '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
    ['{"n":12345678901234567890.5}', '{"a":1}', '{"a":1,"n":12345678901234567890.5}'],
  ])("of %s with %s gives %s", async (target, patch, merged) => {
    const text = "select sluice.merge_patch($1, $2) = $3::jsonb as equal";
    expect(await queue.query(text, [target, patch, merged])).toEqual([{ equal: true }]);
  });

  test("is applied to each job, and jobs that do not fit are skipped with their reasons", async () => {
    const good = await bury(1, { payload: { n: 1 } });
    const bad = await bury(1, { payload: { n: 2 } });
    const run = await start({ type: "echo", patch: { m: 3 } });
    expect(await checked(({ n }) => (n === 2 ? "n: must not be 2" : undefined))).toMatchObject({
      queues: ["default"],
    });
    expect(await db.run(findDeadRun(run.id))).toMatchObject({
      ...{ state: "done", matched: 2, done: 1, skipped: 1, remaining: 0 },
      skips: [{ jobId: bad[0], reason: "n: must not be 2" }],
    });
    expect(await queue.find(good[0] ?? "")).toMatchObject({ status: "pending", payload: { n: 1, m: 3 } });
    expect(await queue.find(bad[0] ?? "")).toMatchObject({ status: "dead", payload: { n: 2 } });
  });

  test("changes nothing before the check, and a check counts once", async () => {
    const [from, to] = ["c_jobs constant int := 50", "c_jobs constant int := 1"];
    await rewriteFunction(db.pool, { name: "patched_jobs", from, to });
    const [first = "", second = ""] = await bury(2, { payload: { n: 1 } });
    const run = await start({ type: "echo", patch: { n: 2 } });
    const found = await step();
    expect(await queue.find(first)).toMatchObject({ status: "dead", payload: { n: 1 } });
    const skips = [{ jobId: first, reason: "no" }];
    const again = { seconds: 1, ahead: found?.check?.ahead ?? {}, skips };
    const answers = await Promise.all(times(4, () => db.run(advanceDeadRun(run.id, again))));
    expect(answers.filter(Boolean)).toHaveLength(1);
    expect(await db.run(findDeadRun(run.id))).toMatchObject({ state: "running", done: 0, skipped: 1 });
    await checked(() => undefined);
    expect(await queue.find(second)).toMatchObject({ status: "pending", payload: { n: 2 } });
    await rewriteFunction(db.pool, { name: "patched_jobs", from: to, to: from });
  });

  test("that makes a payload too large is a fault of that job", async () => {
    await bury(1, { payload: { a: "x".repeat(60_000) } });
    await start({ type: "echo", patch: { b: "y".repeat(10_000) } });
    expect((await step())?.check?.jobs[0]?.fault).toMatch(/larger than 64 KiB/);
  });

  test("does not change a job that was replayed before the step", async () => {
    const [id = ""] = await bury(1, { payload: { n: 1 } });
    const run = await start({ type: "echo", patch: { n: 2 } });
    const found = await step();
    await db.run(replay("bob", { id }));
    await db.run(advanceDeadRun(run.id, { seconds: 1, ahead: found?.check?.ahead ?? {}, skips: [] }));
    expect(await queue.find(id)).toMatchObject({ status: "pending", payload: { n: 1 } });
    expect(await db.run(findDeadRun(run.id))).toMatchObject({ state: "done", done: 0 });
  });
});

describe("at once", () => {
  test("two runs over the same jobs, single replays and discards take each job once", async () => {
    const ids = await bury(300);
    const runs = [await start(), await start({ action: "discard" }), await start({ maxJobs: 50 })];
    const singles = ids.slice(0, 40).map((id, n) => (n % 2 ? discard("bob", { id }) : replay("bob", { id })));
    const [byHand] = await Promise.all([
      Promise.all(singles.map((statement) => queue.isApplied(statement))),
      ...times(6, async () => {
        while (await step());
      }),
      ...times(3, () => db.run(foldDeaths({ limit: 1000 }))),
    ]);
    const ended = await Promise.all(runs.map(({ id }) => finish(id)));
    expect(ended.map(({ state }) => state)).toEqual(["done", "done", "done"]);
    const taken = ended.reduce((sum, { done }) => sum + done, byHand.filter(Boolean).length);
    expect(taken).toBe(300);
    const { pending, discarded, dead } = only(await db.run(books()));
    expect([pending + discarded, dead]).toEqual([300, 0]);
    expect(await differences(queue)).toEqual([]);
  });

  test("many steps of one run take each job once", async () => {
    await bury(200);
    const run = await start({ perMinute: 6000 });
    for (let round = 0; round < 5; round++) {
      await Promise.all(times(6, () => step(0.1)));
      await pass(0.2);
    }
    const { done } = (await db.run(stopDeadRun("bob", run.id)))?.run ?? { done: 0 };
    const { pending, dead } = only(await db.run(books()));
    expect([pending, dead]).toEqual([done, 200 - done]);
  });
});
