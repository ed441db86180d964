// Keys, roles and rate limits of the HTTP API, in workerd.
import { neonConfig } from "@neondatabase/serverless";
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { keyResponse, keysResponse } from "../../src/contract/admin.ts";
import type { OperationId } from "../../src/contract/operations.ts";
import { type Role, roles } from "../../src/core/key.ts";
import { revokedWithinMs } from "../../src/edge/http/guards/key-cache.ts";
import { defineJob } from "../../src/index.ts";
import { adminCallsOf, refusal } from "./admin-calls.ts";
import { adminKey, bindings, useDeployment } from "./deployment.ts";

const types = ["echo", "other"].map((type) =>
  defineJob(type, { payload: z.object({}), timeoutSeconds: 10, run: () => null }),
);
const deployment = useDeployment(types);
const { addKey, ask, newestAudit, send } = adminCallsOf(deployment);
const platform = bindings as unknown as Record<"RATE_LIMITER" | "TIGHT_RATE_LIMITER", RateLimit>;
const unknownKey = `sk_${"a".repeat(43)}`;
const unknownId = "01900000-0000-7000-8000-000000000000";
const enqueue = (key: string, { type = "echo", settings = {} } = {}) =>
  send("POST /v1/jobs", { key, body: { type }, settings });

/** The clock stops until a test moves it. */
const moveClock = (ms: number) => vi.setSystemTime(Date.now() + ms);
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"] });
});
afterEach(async () => {
  await deployment.quiet(); // while the clock is still the one that its drains started with
  vi.useRealTimers();
  neonConfig.fetchFunction = undefined;
});

/** Counts from now on how often a key is looked up in the database. */
function countLookUps(): { count: number } {
  const lookUps = { count: 0 };
  neonConfig.fetchFunction = (url: string, init: RequestInit) => {
    if (String(init.body).includes("find_key")) lookUps.count++;
    return fetch(url, init);
  };
  return lookUps;
}

describe("a new key", () => {
  test("is shown once; the database stores only its hash", async () => {
    const { key, id } = await addKey("producer");
    expect(key).toMatch(/^sk_[A-Za-z0-9_-]{43}$/);
    const rows = await deployment.query(
      "select *, key_hash = sha256($2) as is_hash from sluice.api_key where id = $1",
      [id, key],
    );
    expect(rows).toMatchObject([{ is_hash: true }]);
    const listed = await send("GET /v1/admin/keys");
    const audited = await send("GET /v1/admin/audit");
    for (const text of [JSON.stringify(rows), await listed.text(), await audited.text()]) {
      expect(text).toContain(id);
      expect(text).not.toContain(key);
    }
  });

  test("is different each time", async () => {
    const made = await Promise.all(Array.from({ length: 10 }, () => addKey("viewer")));
    expect(new Set(made.map(({ key }) => key)).size).toBe(10);
  });

  test("is listed with its role, types and limit, and is audited", async () => {
    const { key: _, ...added } = await addKey("producer", { job_types: ["echo"], rate_limit_per_second: 7 });
    expect(added).toMatchObject({ role: "producer", job_types: ["echo"], rate_limit_per_second: 7 });
    const { keys } = await ask("GET /v1/admin/keys", keysResponse);
    expect(keys).toContainEqual(added);
    expect(await newestAudit()).toMatchObject({
      actor: "admin",
      action: "add key",
      target: `key ${added.id}`,
      before: null,
      after: { name: "a producer", role: "producer", job_types: ["echo"], rate_limit_per_second: 7 },
    });
  });

  test("has a default limit of 1,000 calls a second", async () => {
    expect(await addKey("producer")).toMatchObject({ rate_limit_per_second: 1000, job_types: null });
  });

  test.each([
    ["no name", { role: "viewer" }, "name"],
    ["no role", { name: "x" }, "role"],
    ["an unknown role", { name: "x", role: "owner" }, "role"],
    ["types for another role", { name: "x", role: "worker", job_types: ["echo"] }, "job_types"],
    ["a bad type", { name: "x", role: "producer", job_types: ["No Type"] }, "job_types.0"],
    ["a limit of zero", { name: "x", role: "producer", rate_limit_per_second: 0 }, "rate_limit_per_second"],
    ["a name that Postgres cannot store", { name: "a\u0000b", role: "viewer" }, "name"],
  ])("with %s is refused", async (_, body, path) => {
    expect(await refusal(await send("POST /v1/admin/keys", { body }))).toEqual({
      status: 400,
      paths: [path],
    });
  });
});

describe("each operation is allowed for its roles and for no other", () => {
  const keyOf: Partial<Record<Role, string>> = {};
  beforeAll(async () => {
    for (const role of roles) keyOf[role] = (await addKey(role)).key;
  });

  const readers: Role[] = ["viewer", "admin"];
  const admins: Role[] = ["admin"];
  const workers: Role[] = ["worker", "admin"];
  const producers: Role[] = ["producer", "admin"];
  const lease = "none";
  /** Written by hand on purpose: it checks the roles of the operations table. Null means that no key is needed. */
  const rights: Record<OperationId, [string, Role[] | null, object?]> = {
    enqueueJob: ["POST /v1/jobs", producers, { type: "echo" }],
    enqueueJobs: ["POST /v1/jobs/batch", producers, { jobs: [{ type: "echo" }] }],
    listJobs: ["GET /v1/jobs", [...roles]],
    getJob: [`GET /v1/jobs/${unknownId}`, [...roles]],
    cancelJob: [`POST /v1/jobs/${unknownId}/cancel`, producers],
    resolveJob: [`POST /v1/jobs/${unknownId}/resolve`, producers, {}],
    enqueueFlow: ["POST /v1/flows", producers, { jobs: [{ ref: "a", type: "echo" }] }],
    listFlows: ["GET /v1/flows", ["producer", ...readers]],
    getFlow: [`GET /v1/flows/${unknownId}`, ["producer", ...readers]],
    cancelFlow: [`POST /v1/flows/${unknownId}/cancel`, producers],
    deleteFlow: [`DELETE /v1/flows/${unknownId}`, admins],
    getChain: [`GET /v1/chains/${unknownId}`, [...roles]],
    sendSignal: ["POST /v1/signals/go", producers, { key: "k" }],
    nudge: ["POST /v1/nudge", producers, {}],
    claimJobs: ["POST /v1/claims", workers, { worker_id: "w" }],
    completeJob: [`POST /v1/jobs/${unknownId}/complete`, workers, { lease }],
    failJob: [`POST /v1/jobs/${unknownId}/fail`, workers, { lease, error: "x" }],
    releaseJob: [`POST /v1/jobs/${unknownId}/release`, workers, { lease }],
    extendJob: [`POST /v1/jobs/${unknownId}/extend`, workers, { lease, lease_seconds: 60 }],
    storeSteps: [`POST /v1/jobs/${unknownId}/steps`, workers, { lease }],
    startChildren: [`POST /v1/jobs/${unknownId}/children`, workers, { lease, jobs: [] }],
    findWaited: [`POST /v1/jobs/${unknownId}/waited`, workers, { lease }],
    extendJobs: ["POST /v1/extensions", workers, { extensions: [], lease_seconds: 60 }],
    settleJobs: ["POST /v1/settlements", workers, { settlements: [] }],
    registerWorker: ["POST /v1/workers", workers, { worker_id: "w", queues: ["default"] }],
    listWorkers: ["GET /v1/workers", ["worker", ...readers]],
    removeWorker: ["DELETE /v1/workers/w", workers],
    getStats: ["GET /v1/stats", readers],
    getDeployment: ["GET /v1/admin/deployment", readers],
    getMetrics: ["GET /metrics", readers],
    getHealth: ["GET /health", null],
    listDeadLetters: ["GET /v1/admin/dlq", readers],
    listDeadGroups: ["GET /v1/admin/dlq/groups", readers],
    listDeadRuns: ["GET /v1/admin/dlq-runs", readers],
    getDeadRun: ["GET /v1/admin/dlq-runs/1", readers],
    startDeadRun: ["POST /v1/admin/dlq-runs", admins, { action: "replay" }],
    stopDeadRun: ["POST /v1/admin/dlq-runs/1/stop", admins],
    getDeadLetter: [`GET /v1/admin/dlq/${unknownId}`, readers],
    replayDeadLetter: [`POST /v1/admin/dlq/${unknownId}/replay`, admins, {}],
    discardDeadLetter: [`POST /v1/admin/dlq/${unknownId}/discard`, admins, {}],
    replayDeadLetters: ["POST /v1/admin/dlq/replay", admins, { type: "echo" }],
    listJobTypes: ["GET /v1/admin/job-types", readers],
    pauseJobType: ["POST /v1/admin/job-types/other/pause", admins],
    resumeJobType: ["POST /v1/admin/job-types/other/resume", admins],
    putSchedule: ["PUT /v1/schedules/nightly", admins, { cron: "0 2 * * *", type: "echo" }],
    listSchedules: ["GET /v1/schedules", readers],
    getSchedule: ["GET /v1/schedules/unknown", readers],
    deleteSchedule: ["DELETE /v1/schedules/unknown", admins],
    pauseSchedule: ["POST /v1/schedules/unknown/pause", admins],
    resumeSchedule: ["POST /v1/schedules/unknown/resume", admins],
    runSchedule: ["POST /v1/schedules/unknown/run", admins],
    getQueue: ["GET /v1/admin/queues/default", readers],
    listRounds: ["GET /v1/admin/rounds", readers],
    listQueues: ["GET /v1/admin/queues", readers],
    pauseQueue: ["POST /v1/admin/queues/default/pause", admins],
    resumeQueue: ["POST /v1/admin/queues/default/resume", admins],
    listPartitions: ["GET /v1/admin/queues/default/partitions?blocked=true", readers],
    listKeys: ["GET /v1/admin/keys", readers],
    addKey: ["POST /v1/admin/keys", admins, { name: "x", role: "viewer" }],
    revokeKey: [`DELETE /v1/admin/keys/${unknownId}`, admins],
    listAudit: ["GET /v1/admin/audit", readers],
    listAlarms: ["GET /v1/admin/alarms", readers],
    sendTestNotice: ["POST /v1/admin/alarms/test", admins],
    silenceOneAlarm: ["POST /v1/admin/alarms/job_expired/silence", admins, { minutes: 1 }],
    unsilenceAlarm: ["POST /v1/admin/alarms/job_expired/unsilence", admins],
    listAlarmHistory: ["GET /v1/admin/alarms/history", readers],
    listDeliveries: ["GET /v1/admin/alarms/deliveries", readers],
    silenceAlarm: [
      "POST /v1/admin/alarms/silences",
      admins,
      { alarm: "dead_letters", until: "2026-01-01T00:00:00Z" },
    ],
  };

  test.each(Object.values(rights))("%s", async (request, allowed, body) => {
    const options = body ? { body } : {};
    for (const role of roles) {
      const { status } = await send(request, { key: keyOf[role] ?? "", ...options });
      const isAllowed = allowed?.includes(role) ?? true;
      expect([role, status]).toEqual([
        role,
        isAllowed ? expect.toBeOneOf([200, 201, 202, 400, 404, 503]) : 403,
      ]);
    }
    for (const key of allowed ? ["", unknownKey, "sk_short"] : [])
      expect(await refusal(await send(request, { key, ...options }))).toMatchObject({ status: 401 });
  });

  test("a producer may enqueue only the types that its key names", async () => {
    const { key } = await addKey("producer", { job_types: ["echo"] });
    expect((await enqueue(key)).status).toBe(201);
    expect(await refusal(await enqueue(key, { type: "other" }))).toMatchObject({ status: 403 });
    expect(await refusal(await enqueue(key, { type: "nobody" }))).toMatchObject({ status: 403 });
  });

  test("a producer with types sees only jobs of these in flows and chains, and cancels no flow", async () => {
    const { key } = await addKey("producer", { job_types: ["echo"] });
    const body = {
      jobs: [
        { ref: "a", type: "echo" },
        { ref: "b", type: "other", after: ["a"] },
      ],
    };
    expect((await send("POST /v1/flows", { key, body })).status).toBe(403);
    const made = (await (await send("POST /v1/flows", { body })).json()) as {
      flow_id: string;
      jobs: { job_id: string }[];
    };
    const shown = await send(`GET /v1/flows/${made.flow_id}`, { key });
    expect(await shown.json()).toMatchObject({ total: 2, jobs: [{ type: "echo" }] });
    expect((await send(`POST /v1/flows/${made.flow_id}/cancel`, { key })).status).toBe(403);
    expect((await send(`GET /v1/chains/${made.jobs[1]?.job_id}`, { key })).status).toBe(404);
    expect((await send(`GET /v1/chains/${made.jobs[0]?.job_id}`, { key })).status).toBe(200);
    expect((await send(`POST /v1/jobs/${made.jobs[1]?.job_id}/resolve`, { key, body: {} })).status).toBe(404);
  });

  test("the audit names the key that made a change, with its id", async () => {
    const { key, id, name } = await addKey("admin", { name: "night shift" });
    await send("POST /v1/admin/queues/default/resume", { key });
    expect(await newestAudit()).toMatchObject({ action: "resume", actor: `${name} (${id})` });
  });
});

describe("key look-ups in the database", () => {
  test("happen once in ten seconds for a key in use", async () => {
    const { key } = await addKey("producer");
    const lookUps = countLookUps();
    for (let n = 0; n < 5; n++) expect((await enqueue(key)).status).toBe(201);
    expect(lookUps.count).toBe(1);
    moveClock(revokedWithinMs);
    await enqueue(key);
    expect(lookUps.count).toBe(2);
  });

  test("happen once in three seconds for an unknown key, and never for a malformed one", async () => {
    const guess = `sk_${crypto.randomUUID().replaceAll("-", "")}${"b".repeat(11)}`;
    const lookUps = countLookUps();
    for (let n = 0; n < 5; n++) expect((await enqueue(guess)).status).toBe(401);
    expect(lookUps.count).toBe(1);
    moveClock(3000);
    await enqueue(guess);
    expect(lookUps.count).toBe(2);
    for (const key of ["sk_short", `${guess}x`, "another"]) await enqueue(key);
    expect(lookUps.count).toBe(2);
  });

  test("never happen for the admin keys, because these are in the settings", async () => {
    const lookUps = countLookUps();
    const previous = "sk_the_key_before_the_rotation";
    const settings = { SLUICE_ADMIN_KEY_PREVIOUS: previous };
    for (const key of [adminKey, previous])
      expect((await send("GET /v1/admin/keys", { key, settings })).status).toBe(200);
    expect((await send("GET /v1/admin/keys", { key: previous })).status).toBe(401);
    expect(lookUps.count).toBe(0);
  });

  test("do not increase for a key in use when many unknown keys fill the cache", async () => {
    const { key } = await addKey("producer");
    await enqueue(key);
    for (let n = 0; n < 1100; n += 50)
      await Promise.all(
        Array.from({ length: 50 }, (_, i) => enqueue(`sk_${String(n + i).padStart(43, "g")}`)),
      );
    const lookUps = countLookUps();
    expect((await enqueue(key)).status).toBe(201);
    expect(lookUps.count).toBe(0);
  });
});

test("while the database is unreachable a key gets a 503; afterwards it works again", async () => {
  const { key } = await addKey("producer");
  const settings = { DATABASE_URL: deployment.databaseUrl.replace(/[^/]+$/, "no_such_database") };
  const response = await enqueue(key, { settings });
  expect(response.headers.get("retry-after")).toBe("5");
  expect(await refusal(response)).toMatchObject({ status: 503 });
  expect((await enqueue(key)).status).toBe(201);
});

describe("a revoked key", () => {
  test("is refused at once by the isolate that revoked it", async () => {
    const { key, id } = await addKey("producer");
    expect((await enqueue(key)).status).toBe(201);
    const revoked = await ask(`DELETE /v1/admin/keys/${id}`, keyResponse);
    expect(revoked.revoked_at).not.toBeNull();
    expect((await enqueue(key)).status).toBe(401);
    expect(await newestAudit()).toMatchObject({
      action: "revoke key",
      target: `key ${id}`,
      before: { revoked_at: null },
      after: { revoked_at: expect.any(String) },
    });
  });

  test("is refused within ten seconds by other isolates that know it", async () => {
    const { key, id } = await addKey("producer");
    expect((await enqueue(key)).status).toBe(201);
    // As if another isolate had revoked it: this one does not hear of it.
    await deployment.query("select from sluice.revoke_key('elsewhere', $1)", [id]);
    moveClock(revokedWithinMs - 1);
    expect((await enqueue(key)).status).toBe(201);
    moveClock(1);
    expect((await enqueue(key)).status).toBe(401);
  });

  test.each([unknownId, "not-an-id"])("with an unknown id (%s) is a 404", async (id) => {
    expect(await refusal(await send(`DELETE /v1/admin/keys/${id}`))).toMatchObject({ status: 404 });
  });
});

describe("a key that is used too often", () => {
  test.each([
    ["with the binding of wrangler.toml", {}],
    ["with no binding", { RATE_LIMITER: undefined }],
  ])("%s gets 429 with Retry-After until the second is over; other keys do not", async (_, settings) => {
    const { key } = await addKey("producer", { rate_limit_per_second: 3 });
    const { key: another } = await addKey("producer");
    vi.setSystemTime(Math.ceil(Date.now() / 1000) * 1000);
    const answers = await Promise.all(Array.from({ length: 5 }, () => enqueue(key, { settings })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 201, 201, 429, 429]);
    const late = await enqueue(key, { settings });
    expect(late.headers.get("retry-after")).toBe("1");
    expect(await refusal(late)).toMatchObject({ status: 429 });
    expect((await enqueue(another, { settings })).status).toBe(201);
    moveClock(1000);
    expect((await enqueue(key, { settings })).status).toBe(201);
  });

  test("gets 429 with Retry-After when Cloudflare's rate limiter refuses it; other keys do not", async () => {
    const settings = { RATE_LIMITER: platform.TIGHT_RATE_LIMITER };
    const { key } = await addKey("producer");
    // Meanwhile Cloudflare's own clock may start a new period once, but hardly twice.
    const answers = await Promise.all(Array.from({ length: 10 }, () => enqueue(key, { settings })));
    const taken = answers.filter(({ status }) => status === 201).length;
    expect([3, 4, 5, 6]).toContain(taken);
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(10 - taken);
    for (const late of refused) {
      expect(late.headers.get("retry-after")).toBe("10");
      expect(await refusal(late)).toMatchObject({ status: 429 });
    }
    expect((await enqueue((await addKey("producer")).key, { settings })).status).toBe(201);
    expect((await enqueue(adminKey, { settings })).status).toBe(201);
  });

  test("counts under several names in Cloudflare's rate limiter if its limit is above the default", async () => {
    const limiterKeys: string[] = [];
    const limit = ({ key }: { key: string }) => {
      limiterKeys.push(key);
      return platform.RATE_LIMITER.limit({ key });
    };
    const settings = { RATE_LIMITER: { limit } };
    const plain = await addKey("producer");
    const frequent = await addKey("producer", { rate_limit_per_second: 2_500 });
    for (const { key } of [plain, plain, frequent, frequent, frequent, frequent])
      expect((await enqueue(key, { settings })).status).toBe(201);
    expect(limiterKeys).toEqual([
      plain.id,
      plain.id,
      ...[1, 2, 0, 1].map((share) => `${frequent.id}/${share}`),
    ]);
  });
});
