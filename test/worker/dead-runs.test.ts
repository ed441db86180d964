// Groups of dead letters and runs over them in workerd: over HTTP, by cron, and after the Worker was killed.
import { afterEach, describe, expect, test } from "vitest";
import * as z from "zod";
import {
  deadGroupsResponse,
  deadLetterPage,
  deadRunCount,
  deadRunPage,
  deadRunResponse,
  replayManyResponse,
} from "../../src/contract/dead-letters.ts";
import { defineJob, FatalError } from "../../src/index.ts";
import { adminCallsOf, refusal } from "./admin-calls.ts";
import { useDeployment } from "./deployment.ts";

const order = defineJob("order", {
  payload: z.object({ n: z.int(), passes: z.boolean().default(false) }),
  timeoutSeconds: 10,
  run: ({ n, passes }) => {
    if (!passes) throw new FatalError(n < 10 ? `order ${n} is unknown` : `no route for order ${n}`);
  },
});
const deployment = useDeployment([order]);
const { enqueueMany, fire, look, query } = deployment;
const { ask, newestAudit, send } = adminCallsOf(deployment);
afterEach(() => deployment.quiet());

async function bury(...numbers: number[]): Promise<string[]> {
  const ids = await enqueueMany(
    "order",
    numbers.map((n) => ({ n })),
  );
  await fire();
  return ids.toSorted();
}
const runs = "/v1/admin/dlq-runs";
const start = (body: object) => ask(`POST ${runs}`, deadRunResponse, { action: "replay", ...body });
const get = (id: string) => ask(`GET ${runs}/${id}`, deadRunResponse);
async function ended(id: string) {
  await deployment.quiet();
  return get(id);
}
const groups = (filter = "") => ask(`GET /v1/admin/dlq/groups${filter}`, deadGroupsResponse);
const passing = { payload_patch: { passes: true }, type: "order" };

describe("groups", () => {
  test("are listed with their errors, and filter the list of dead letters", async () => {
    const ids = await bury(1, 2, 11);
    const { groups: listed, ...totals } = await groups();
    expect(totals).toEqual({ total_groups: 2, total_jobs: 3 });
    expect(listed).toMatchObject([
      { type: "order", reason: "fatal", count: 2, pattern: "order ‹n› is unknown", newest_job_id: ids[1] },
      { count: 1, error: "no route for order 11", newest_job_id: ids[2] },
    ]);
    const path = `GET /v1/admin/dlq?fingerprint=${listed[0]?.fingerprint}`;
    const { jobs } = await ask(path, deadLetterPage);
    expect(jobs.map(({ job_id }) => job_id).toSorted()).toEqual(ids.slice(0, 2));
    expect((await groups("?type=nobody")).groups).toEqual([]);
    expect((await groups("?limit=1")).groups).toHaveLength(1);
    await fire("*/2 * * * *"); // folds
    expect(await groups()).toEqual({ groups: listed, ...totals });
  });

  test.each(["limit=0", "limit=201", "reason=boredom", "type=No", "cursor=x"])(
    "the query %s is a 400",
    async (filter) => {
      expect(await refusal(await send(`GET /v1/admin/dlq/groups?${filter}`))).toMatchObject({ status: 400 });
    },
  );

  test.each(["fingerprint=1", "fingerprint=00000000000000zz", "since=yesterday", "until=1", "queue=No"])(
    "the list query %s is a 400 that names the parameter",
    async (filter) => {
      expect(await refusal(await send(`GET /v1/admin/dlq?${filter}`))).toEqual({
        ...{ status: 400, paths: [filter.split("=")[0]] },
      });
    },
  );

  test("the list can be limited to a time", async () => {
    const [id] = await bury(1);
    const list = async (filter: string) => (await ask(`GET /v1/admin/dlq?${filter}`, deadLetterPage)).jobs;
    const now = new Date().toISOString();
    expect((await list(`until=${now}`)).map(({ job_id }) => job_id)).toEqual([id]);
    expect(await list(`since=${now}`)).toEqual([]);
  });
});

describe("a run", () => {
  test("is counted first, then takes what was counted, and its jobs run at once", async () => {
    const ids = await bury(1, 2);
    await bury(11);
    const {
      groups: [group],
    } = await groups();
    const filter = { type: "order", reason: "fatal", fingerprint: group?.fingerprint };
    const audited = await newestAudit();
    const body = { action: "replay", ...filter, dry_run: true };
    const counted = await ask(`POST ${runs}`, deadRunCount, body);
    expect(counted).toMatchObject({ matched: 2, dry_run: true });
    expect(await newestAudit()).toEqual(audited);
    await bury(3);
    const run = await start({ ...filter, ...passing, until: counted.until, note: "fixed" });
    expect(run).toMatchObject({
      state: "running",
      matched: 2,
      done: 0,
      skipped: 0,
      remaining: 2,
      actor: "admin",
    });
    expect(await ended(run.run_id)).toMatchObject({ state: "done", done: 2, remaining: 0, note: "fixed" });
    for (const id of ids)
      expect(await look(id)).toMatchObject({ status: "completed", payload: { passes: true } });
    expect((await groups()).total_jobs).toBe(2);
  });

  test("skips payloads that do not fit their type after the patch, and says why", async () => {
    const [id] = await bury(1);
    const run = await start({ type: "order", payload_patch: { n: "one" } });
    expect(await ended(run.run_id)).toMatchObject({
      ...{ state: "done", matched: 1, done: 0, skipped: 1 },
      skips: [{ job_id: id, reason: expect.stringMatching(/^n: /) }],
    });
    expect(await look(id ?? "")).toMatchObject({ status: "dead", payload: { n: 1 } });
  });

  test("discards with a reason, which is in the audit", async () => {
    const [id = ""] = await bury(1);
    const run = await start({ action: "discard", note: "spam" });
    expect(await ended(run.run_id)).toMatchObject({ state: "done", done: 1 });
    expect(await look(id)).toMatchObject({ status: "discarded" });
    expect(await newestAudit()).toMatchObject({ action: "end run", after: { note: "spam", done: 1 } });
  });

  test("with a rate goes on by cron, also if the Worker that started it was killed, until it is stopped", async () => {
    const ids = await bury(1, 2, 3, 4, 5);
    const run = await start({ per_minute: 1 });
    await deployment.quiet();
    expect(await get(run.run_id)).toMatchObject({ state: "running", done: 1, remaining: 4 });
    expect(await look(ids[1] ?? "")).toMatchObject({ status: "pending" }); // planned: there is no clock
    await query("update sluice.dead_run set next_at = next_at - interval '1 minute'");
    await fire();
    expect(await look(ids[2] ?? "")).toMatchObject({ status: "pending" });
    const stopped = await ask(`POST ${runs}/${run.run_id}/stop`, deadRunResponse);
    expect(stopped).toMatchObject({ state: "stopped", done: 1, remaining: 4 });
    await query("update sluice.dead_run set next_at = next_at - interval '10 minutes'");
    await fire();
    expect(await get(run.run_id)).toMatchObject({ state: "stopped", done: 1 });
    const statuses = await Promise.all(ids.slice(1).map(async (id) => (await look(id)).status));
    expect(statuses).toEqual(["dead", "dead", "dead", "dead"]);
    expect(await refusal(await send(`POST ${runs}/${run.run_id}/stop`))).toMatchObject({ status: 409 });
  });

  test("that nobody has taken a step of is taken up by the next cron", async () => {
    const ids = await bury(1, 2);
    await query(
      "select sluice.start_dead_run('ann','replay','order',null,null,null,null,null,null,'{\"passes\":true}',null)",
    );
    await fire();
    for (const id of ids) expect(await look(id)).toMatchObject({ status: "completed" });
  });

  test("is listed newest first", async () => {
    const ids = [(await start({})).run_id, (await start({})).run_id, (await start({})).run_id];
    const first = await ask(`GET ${runs}?limit=2`, deadRunPage);
    const second = await ask(`GET ${runs}?limit=2&cursor=${first.next_cursor}`, deadRunPage);
    expect([...first.runs, ...second.runs].map(({ run_id }) => run_id)).toEqual(ids.toReversed());
    expect(second.next_cursor).toBeNull();
  });

  test.each([
    [{}, "action"],
    [{ action: "delete" }, "action"],
    [{ action: "replay", reason: "boredom" }, "reason"],
    [{ action: "replay", fingerprint: "xyz" }, "fingerprint"],
    [{ action: "replay", per_minute: 0 }, "per_minute"],
    [{ action: "replay", count: 0 }, "count"],
    [{ action: "replay", until: "tomorrow" }, "until"],
    [{ action: "replay", payload_patch: { a: 1 } }, "payload_patch"],
    [{ action: "discard", type: "order", payload_patch: { a: 1 } }, "payload_patch"],
    [{ action: "replay", type: "order", payload_patch: [] }, "payload_patch"],
    [{ action: "replay", note: "a\nb" }, "note"],
  ])("the body %j is a 400 that names the field, and starts nothing", async (body, path) => {
    await bury(1);
    expect(await refusal(await send(`POST ${runs}`, { body }))).toEqual({ status: 400, paths: [path] });
    expect((await ask(`GET ${runs}`, deadRunPage)).runs).toEqual([]);
    expect((await groups()).total_jobs).toBe(1);
  });

  test("with a patch of a type that is not registered is a 403", async () => {
    const body = { action: "replay", type: "nobody", payload_patch: { a: 1 } };
    expect(await refusal(await send(`POST ${runs}`, { body }))).toMatchObject({ status: 403 });
  });

  test.each(["0", "999999999", "x", "99999999999999999999"])("the id %s is a 404", async (id) => {
    expect(await refusal(await send(`GET ${runs}/${id}`))).toMatchObject({ status: 404 });
    expect(await refusal(await send(`POST ${runs}/${id}/stop`))).toMatchObject({ status: 404 });
  });
});

test("a replay of many with a rate is a run", async () => {
  await bury(1, 2, 3);
  const body = { type: "order", count: 2, per_minute: 1 };
  const { run_id = "", ...answer } = await ask("POST /v1/admin/dlq/replay", replayManyResponse, body);
  expect(answer).toEqual({ replayed: 2, dry_run: false });
  expect(await ended(run_id)).toMatchObject({
    action: "replay",
    type: "order",
    count: 2,
    per_minute: 1,
    done: 1,
  });
});
