// The admin's routes in workerd: dead letters, types, queues, audit, stats.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import {
  auditPage,
  type JobTypeResponse,
  jobTypesResponse,
  partitionPage,
  pausedQueueResponse,
  pausedTypeResponse,
  queuesResponse,
} from "../../src/contract/admin.ts";
import { deadLetterPage, replayManyResponse } from "../../src/contract/dead-letters.ts";
import { jobResponse } from "../../src/contract/jobs.ts";
import { statsResponse } from "../../src/contract/stats.ts";
import { defineJob, definePulledJob, defineQueue, FatalError } from "../../src/index.ts";
import { adminCallsOf, refusal } from "./admin-calls.ts";
import { useDeployment } from "./deployment.ts";

/** The job fails for good, unless its payload lets it pass. */
const picky = (type: string, queue = "default") =>
  defineJob(type, {
    payload: z.object({ passes: z.boolean() }),
    queue,
    timeoutSeconds: 10,
    run: ({ passes }) => {
      if (!passes) throw new FatalError("not this one");
    },
  });
const deployment = useDeployment(
  [
    picky("order"),
    picky("invoice", "papers"),
    definePulledJob("pulled", {
      payload: z.object({}),
      concurrency: 2,
      rate: { limit: 10, per: "minute" },
      maxAttempts: 3,
    }),
  ],
  {},
  [defineQueue("declared", { shares: { concurrency: 2 } })],
);
const { enqueueMany, fire, look, query } = deployment;
const { ask, newestAudit, send } = adminCallsOf(deployment);
const unknownId = "01900000-0000-7000-8000-000000000000";

beforeEach(() => query("truncate sluice.pause"));
afterEach(() => deployment.quiet());

/** Makes dead letters and returns their ids, oldest first. */
async function bury(count: number, type = "order"): Promise<string[]> {
  const payloads = Array.from({ length: count }, () => ({ passes: false }));
  const ids = await enqueueMany(type, payloads, { queue: type === "invoice" ? "papers" : "default" });
  await fire();
  return ids.toSorted();
}

const listed = async (filters: string) =>
  (await ask(`GET /v1/admin/dlq${filters}`, deadLetterPage)).jobs.map((job) => job.job_id);

describe("dead letters", () => {
  test("are listed newest first; the pages have no gap and no overlap", async () => {
    const ids = await bury(5);
    const listedIds: string[] = [];
    let cursor: string | null = "";
    for (let pages = 0; cursor !== null && pages < 5; pages++) {
      const page: z.output<typeof deadLetterPage> = await ask(
        `GET /v1/admin/dlq?limit=2&cursor=${cursor}`,
        deadLetterPage,
      );
      expect(page.jobs.length).toBeLessThanOrEqual(2);
      listedIds.push(...page.jobs.map((job) => job.job_id));
      cursor = page.next_cursor;
    }
    expect(listedIds).toEqual(ids.toReversed());
  });

  test("can be filtered by type and by reason", async () => {
    const [order] = await bury(1);
    const [invoice] = await bury(1, "invoice");
    expect(await listed("?type=order")).toEqual([order]);
    expect(await listed("?reason=fatal")).toEqual([invoice, order]);
    expect(await listed("?reason=expired")).toEqual([]);
  });

  test.each([
    ["limit=0", "limit"],
    ["limit=101", "limit"],
    ["reason=boredom", "reason"],
    ["type=No Type", "type"],
    ["cursor=%00", "cursor"],
    ["cursor=bm8", "cursor"],
  ])("the list query %s is a 400 that names the parameter", async (filter, path) => {
    expect(await refusal(await send(`GET /v1/admin/dlq?${filter.replace(" ", "+")}`))).toEqual({
      status: 400,
      paths: [path],
    });
  });

  test("GET shows the payload and every error", async () => {
    const [id = ""] = await bury(1);
    expect(await ask(`GET /v1/admin/dlq/${id}`, jobResponse)).toMatchObject({
      job_id: id,
      status: "dead",
      dead_reason: "fatal",
      payload: { passes: false },
      errors: [{ attempt: 1, message: "not this one", worker: expect.stringMatching(/^(drain|nudge)-/) }],
    });
  });

  test("for a job that is not dead, GET is a 404, replay and discard are a 409", async () => {
    const [id = ""] = await enqueueMany("order", [{ passes: true }]);
    expect(await refusal(await send(`GET /v1/admin/dlq/${id}`))).toMatchObject({ status: 404 });
    for (const verb of ["replay", "discard"])
      expect(await refusal(await send(`POST /v1/admin/dlq/${id}/${verb}`))).toMatchObject({ status: 409 });
  });

  test.each([unknownId, "not-an-id"])("an id without a job (%s) is a 404", async (id) => {
    for (const request of [`GET /v1/admin/dlq/${id}`, ...verbs(id)])
      expect(await refusal(await send(request))).toMatchObject({ status: 404 });
  });
  const verbs = (id: string) => ["replay", "discard"].map((verb) => `POST /v1/admin/dlq/${id}/${verb}`);
});

describe("replay of one dead letter", () => {
  test("runs it at once with the new payload; the audit has both payloads", async () => {
    const [id = ""] = await bury(1);
    const replayed = await ask(`POST /v1/admin/dlq/${id}/replay`, jobResponse, { payload: { passes: true } });
    expect(replayed).toMatchObject({ job_id: id, status: "pending", attempts: 0 });
    expect(await newestAudit()).toMatchObject({
      actor: "admin",
      action: "replay",
      target: `job ${id}`,
      before: { status: "dead", payload: { passes: false } },
      after: { status: "pending", payload: { passes: true } },
    });
    await deployment.quiet();
    expect(await look(id)).toMatchObject({ status: "completed", payload: { passes: true } });
  });

  test("without a body keeps its payload", async () => {
    const [id = ""] = await bury(1);
    await ask(`POST /v1/admin/dlq/${id}/replay`, jobResponse);
    await deployment.quiet();
    expect(await look(id)).toMatchObject({ status: "dead", errors: [{}, {}] });
  });

  test.each([
    ["that does not fit the type", { payload: { passes: "yes" } }, 400, ["payload.passes"]],
    ["that is no object", { payload: [] }, 400, ["payload"]],
    ["that is too large", { payload: { passes: true, note: "x".repeat(65_536) } }, 413, ["payload"]],
    ["in an unknown field", { paylaod: {} }, 400, ["paylaod"]],
  ])("with a payload %s is refused and changes nothing", async (_, body, status, paths) => {
    const [id = ""] = await bury(1);
    const before = await newestAudit();
    expect(await refusal(await send(`POST /v1/admin/dlq/${id}/replay`, { body }))).toEqual({ status, paths });
    expect(await look(id)).toMatchObject({ status: "dead", payload: { passes: false } });
    expect(await newestAudit()).toEqual(before);
  });

  test("with a new payload is a 403 if the type is not registered", async () => {
    const [id = ""] = await enqueueMany("nobody", [{}]);
    const [held] = await query<{ key: string }>(
      "select claimed ->> 'key' as key from sluice.claim('default', '{nobody}', 1, 60) as claimed",
    );
    const outcomes = JSON.stringify([{ outcome: "bury", message: "no" }]);
    await query("select sluice.settle($1, $2, $3)", [[id], [held?.key], outcomes]);
    const response = await send(`POST /v1/admin/dlq/${id}/replay`, { body: { payload: {} } });
    expect(await refusal(response)).toMatchObject({ status: 403 });
  });
});

describe("discard", () => {
  test("records the reason in the audit", async () => {
    const [id = ""] = await bury(1);
    const body = { reason: "a test order" };
    expect(await ask(`POST /v1/admin/dlq/${id}/discard`, jobResponse, body)).toMatchObject({
      status: "discarded",
    });
    expect(await newestAudit()).toMatchObject({
      action: "discard",
      target: `job ${id}`,
      before: { status: "dead" },
      after: { status: "discarded", reason: "a test order" },
    });
    expect(await refusal(await send(`POST /v1/admin/dlq/${id}/discard`))).toMatchObject({ status: 409 });
    expect(await listed("")).toEqual([]);
  });

  test("needs no body", async () => {
    const [id = ""] = await bury(1);
    expect((await send(`POST /v1/admin/dlq/${id}/discard`)).status).toBe(200);
  });
});

describe("replay of many", () => {
  const replayMany = (body: object) => ask("POST /v1/admin/dlq/replay", replayManyResponse, body);

  test("a dry run counts the jobs, changes nothing and is not audited", async () => {
    const ids = await bury(3);
    const before = await newestAudit();
    expect(await replayMany({ type: "order", dry_run: true })).toEqual({ replayed: 3, dry_run: true });
    expect(await replayMany({ type: "order", count: 2, dry_run: true })).toMatchObject({ replayed: 2 });
    expect(await listed("")).toEqual(ids.toReversed());
    expect(await newestAudit()).toEqual(before);
  });

  test("replays the oldest jobs of the type, up to the count", async () => {
    const ids = await bury(3);
    const [invoice] = await bury(1, "invoice");
    await send("POST /v1/admin/job-types/order/pause"); // so that the replayed jobs do not fail again
    expect(await replayMany({ type: "order", count: 2, reason: "fatal" })).toMatchObject({ replayed: 2 });
    expect(await listed("")).toEqual([invoice, ids[2]]);
    expect(await newestAudit()).toMatchObject({
      action: "replay many",
      target: "type order",
      after: { replayed: 2, ids: ids.slice(0, 2) },
    });
    expect(await replayMany({ type: "order", reason: "expired" })).toMatchObject({ replayed: 0 });
    expect(await replayMany({ type: "order" })).toMatchObject({ replayed: 1 });
  });

  test("starts a drain of each queue that got jobs", async () => {
    const [id = ""] = await bury(1, "invoice");
    await replayMany({ type: "invoice" });
    await deployment.quiet();
    expect(await look(id)).toMatchObject({ status: "dead", errors: [{}, {}] });
  });

  test.each([
    ["no type", {}, "type"],
    ["a count of zero", { type: "order", count: 0 }, "count"],
    ["a count that is too large", { type: "order", count: 1001 }, "count"],
  ])("with %s is refused", async (_, body, path) => {
    const response = await send("POST /v1/admin/dlq/replay", { body });
    expect(await refusal(response)).toEqual({ status: 400, paths: [path] });
  });
});

describe("job types", () => {
  const typeOf = async (type: string): Promise<JobTypeResponse | undefined> =>
    (await ask("GET /v1/admin/job-types", jobTypesResponse)).job_types.find((found) => found.type === type);

  test("are listed with their options, breaker and books", async () => {
    await bury(2);
    await query("select sluice.open_breaker('order')");
    const { job_types } = await ask("GET /v1/admin/job-types", jobTypesResponse);
    expect(job_types.map(({ type }) => type)).toEqual(["order", "invoice", "pulled"]);
    expect(await typeOf("order")).toMatchObject({
      queue: "default",
      work: "single",
      timeout_seconds: 10,
      paused: false,
      breaker: { state: "open", opened_at: expect.any(String) },
      books: { enqueued: 2, dead: 2, pending: 0 },
    });
    expect(await typeOf("pulled")).toMatchObject({
      work: "pulled",
      max_attempts: 3,
      concurrency: 2,
      rate: { limit: 10, per_seconds: 60 },
      breaker: { state: "closed", opened_at: null },
      books: { enqueued: 0 },
    });
  });

  test("a queue that the deployment defines can be looked at and paused before its first job", async () => {
    expect((await send("GET /v1/admin/queues/declared")).status).toBe(200);
    expect((await send("POST /v1/admin/queues/declared/pause")).status).toBe(200);
    expect((await send("GET /v1/admin/queues/undeclared")).status).toBe(404);
  });

  test("a pause stops its jobs; resuming starts them at once", async () => {
    const paused = await ask("POST /v1/admin/job-types/order/pause", pausedTypeResponse);
    expect(paused).toEqual({ type: "order", paused: true });
    expect(await typeOf("order")).toMatchObject({ paused: true, paused_since: expect.any(String) });
    const [id = ""] = await enqueueMany("order", [{ passes: true }]);
    await fire();
    expect(await look(id)).toMatchObject({ status: "pending" });
    expect((await send("POST /v1/admin/job-types/order/resume")).status).toBe(200);
    await deployment.quiet();
    expect(await look(id)).toMatchObject({ status: "completed" });
    const { entries } = await ask("GET /v1/admin/audit?limit=2", auditPage);
    expect(entries).toMatchObject([
      { action: "resume", target: "type order", before: { paused: true }, after: { paused: false } },
      { action: "pause", target: "type order", before: { paused: false }, after: { paused: true } },
    ]);
  });

  test.each(["pause", "resume"])("%s of an unregistered type is a 404", async (verb) => {
    expect(await refusal(await send(`POST /v1/admin/job-types/nobody/${verb}`))).toMatchObject({
      status: 404,
    });
  });
});

describe("queues", () => {
  const queues = async () => (await ask("GET /v1/admin/queues", queuesResponse)).queues;

  test("the list has the queues of the deployment, of all types, jobs and pauses, with their books", async () => {
    await enqueueMany("order", [{ passes: true }], { queue: "rush" });
    await enqueueMany("order", [{ passes: true }], { queue: "later" });
    await send("POST /v1/admin/queues/later/pause");
    expect(await queues()).toMatchObject([
      { queue: "declared", paused: false, books: { enqueued: 0 } },
      { queue: "default", paused: false, books: { enqueued: 0 } },
      { queue: "later", paused: true, paused_since: expect.any(String) },
      { queue: "papers", paused: false },
      { queue: "rush", paused: false, books: { enqueued: 1, pending: 1 } },
    ]);
  });

  test("a pause stops its jobs; resuming starts them at once", async () => {
    const [id = ""] = await enqueueMany("order", [{ passes: true }], { queue: "rush" });
    await send("POST /v1/admin/queues/rush/pause");
    await fire();
    expect(await look(id)).toMatchObject({ status: "pending" });
    const resumed = await ask("POST /v1/admin/queues/rush/resume", pausedQueueResponse);
    expect(resumed).toEqual({ queue: "rush", paused: false });
    await deployment.quiet();
    expect(await look(id)).toMatchObject({ status: "completed" });
    expect(await newestAudit()).toMatchObject({ action: "resume", target: "queue rush" });
  });

  test("an invalid queue name is a 404", async () => {
    expect(await refusal(await send("POST /v1/admin/queues/No%20Queue/pause"))).toMatchObject({
      status: 404,
    });
  });
});

describe("the list of blocked partitions", () => {
  test.each([
    ["", "blocked"],
    ["?blocked=false", "blocked"],
    ["?blocked=true&limit=0", "limit"],
    ["?blocked=true&cursor=bm8", "cursor"],
    [`?blocked=true&cursor=${btoa(`1/${unknownId.replace("-", "_")}`)}`, "cursor"],
  ])("the list query %s is a 400 that names the parameter", async (filter, path) => {
    const response = await send(`GET /v1/admin/queues/default/partitions${filter}`);
    expect(await refusal(response)).toEqual({ status: 400, paths: [path] });
  });

  test("of a queue that does not exist are a 404, and of one without partition keys there are none", async () => {
    const list = (queue: string) => `GET /v1/admin/queues/${queue}/partitions?blocked=true`;
    expect(await refusal(await send(list("nobody")))).toMatchObject({ status: 404 });
    expect(await ask(list("default"), partitionPage)).toEqual({ partitions: [], next_cursor: null });
  });
});

describe("the blocked partitions of a queue", () => {
  const bury = async (partition_key: string) => {
    const id = await deployment.enqueue({ type: "order", partition_key, payload: { passes: false } });
    await deployment.quiet();
    return id;
  };

  test("are listed with their dead jobs, and the pages have no gap and no overlap", async () => {
    const ids = [await bury("a"), await bury("b"), await bury("c")];
    const waiting = await deployment.enqueue({
      ...{ type: "order", partition_key: "a", payload: { passes: true } },
    });
    await deployment.quiet();
    const path = "GET /v1/admin/queues/default/partitions?blocked=true&limit=2";
    const first = await ask(path, partitionPage);
    const second = await ask(`${path}&cursor=${first.next_cursor}`, partitionPage);
    const partitions = [...first.partitions, ...second.partitions];
    expect(partitions.map(({ job_id }) => job_id)).toEqual(ids);
    expect(second.next_cursor).toBeNull();
    expect(partitions[0]).toMatchObject({
      ...{ partition_key: "a", type: "order", dead_reason: "fatal", error: "not this one" },
      ...{ waiting: 1, waiting_is_more: false, since: expect.any(String) },
    });
    expect((await look(waiting)).waiting_for).toEqual({
      kind: "key",
      detail: expect.stringMatching(
        /^Job \S+ of the partition key "a" has been dead since .* UTC\. It blocks the key until it is replayed or discarded\.$/,
      ),
      job_ids: [ids[0]],
    });
    const { blocked_partitions } = await ask("GET /v1/stats", statsResponse);
    expect(blocked_partitions).toMatchObject([{ queue: "default", partitions: 3, job_id: ids[0] }]);
    expect(await (await send("GET /metrics")).text()).toContain(
      'sluice_blocked_partitions{queue="default"} 3\n',
    );
  });

  test("lose a key whose dead job is discarded, and the jobs behind it run", async () => {
    const id = await bury("a");
    const waiting = await deployment.enqueue({
      ...{ type: "order", partition_key: "a", payload: { passes: true } },
    });
    await send(`POST /v1/admin/dlq/${id}/discard`);
    await send("POST /v1/admin/queues/default/resume"); // it starts a drain
    await deployment.quiet();
    expect(await look(waiting)).toMatchObject({ status: "completed", waiting_for: null });
    const path = "GET /v1/admin/queues/default/partitions?blocked=true";
    expect((await ask(path, partitionPage)).partitions).toEqual([]);
  });
});

describe("the audit", () => {
  test("is listed newest first; the pages have no gap and no overlap", async () => {
    for (const queue of ["a", "b", "c", "d", "e"]) {
      await enqueueMany("order", [{ passes: true }], { queue });
      await send(`POST /v1/admin/queues/${queue}/pause`);
    }
    const first = await ask("GET /v1/admin/audit?limit=2", auditPage);
    const second = await ask(`GET /v1/admin/audit?limit=2&cursor=${first.next_cursor}`, auditPage);
    const targets = [...first.entries, ...second.entries].map((entry) => entry.target);
    expect(targets).toEqual(["queue e", "queue d", "queue c", "queue b"]);
  });

  test("refuses the cursor of another list", async () => {
    const cursor = btoa(unknownId);
    expect(await refusal(await send(`GET /v1/admin/audit?cursor=${cursor}`))).toEqual({
      status: 400,
      paths: ["cursor"],
    });
  });
});

test("an unknown route is a 404 problem document", async () => {
  expect(await refusal(await send("GET /v1/admin/nothing"))).toMatchObject({ status: 404 });
});
