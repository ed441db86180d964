// No failure is silent. Each test stops something in workerd and expects exactly its alarm, signed, at a real HTTP
// receiver, and a second notice when the alarm resolves. Tests let time pass by moving recorded times into the past.
import { beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { noticeBody } from "../../src/contract/alarms.ts";
import { claimResponse } from "../../src/contract/work.ts";
import { defineJob, definePulledJob, FatalError } from "../../src/index.ts";
import { type Inbox, openInbox } from "../support/inbox.ts";
import { bindings, crons, useDeployment } from "./deployment.ts";

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const any = z.object({});
const deployment = useDeployment([
  definePulledJob("remote", { payload: any }),
  // Its time-out fits into a drain that an enqueue starts.
  defineJob("brief", { payload: any, timeoutSeconds: 10, run: () => Promise.reject(new FatalError("down")) }),
  defineJob("broken", { payload: any, run: () => Promise.reject(new FatalError("down")) }),
]);
const { call, enqueueMany, fire, query } = deployment;
let inbox: Inbox;

beforeEach(async () => {
  inbox = openInbox(bindings.RECEIVER_URL, "alarms");
  await query("truncate sluice.pause");
});

/** Rounds of a deployment with these alarm rules on top of the defaults. */
function deployWith(rules: object) {
  const settings = () => ({
    SLUICE_ALARM_TARGETS: JSON.stringify([{ name: "ops", url: inbox.url, format: "generic", secret }]),
    SLUICE_ALARM_RULES: JSON.stringify(rules),
  });
  const round = async (...kinds: (keyof typeof crons)[]) => {
    for (const kind of kinds) await fire(crons[kind], settings());
  };
  return {
    round,
    /** Runs all three crons once, as on a normal day. */
    beat: () => round("drain", "reap", "watch"),
    /** Makes the deployment older than the minutes that a new one gets to start. */
    async settledIn(work: () => Promise<unknown> = async () => {}) {
      await round("drain", "reap", "watch");
      await pass(6);
      await work();
      await round("drain", "reap", "watch", "drain");
    },
  };
}

/** Lets minutes pass: moves every recorded time into the past. */
async function pass(minutes: number): Promise<void> {
  const ago = `make_interval(mins => ${minutes})`;
  await query(`update sluice.ledger set at = at - ${ago}`);
  // The minutes are unique. Moving them far away first keeps the update from colliding with itself.
  await query("update sluice.tally set minute = minute + interval '1000 years' where minute > '-infinity'");
  await query(
    `update sluice.tally set minute = minute - interval '1000 years' - ${ago} where minute > '-infinity'`,
  );
  await query(`update sluice.round set started_at = started_at - ${ago}, ended_at = ended_at - ${ago}`);
}

const produce = (count: number) =>
  enqueueMany(
    "remote",
    Array.from({ length: count }, () => ({})),
  );

/** Acts as a puller: claims waiting jobs and completes them. */
async function consume(limit = 100): Promise<void> {
  const post = (path: string, body: object) => call(path, { method: "POST", body: JSON.stringify(body) });
  const claimed = claimResponse.parse(await (await post("/v1/claims", { worker_id: "w", limit })).json());
  const settlements = claimed.jobs.map(({ job_id, lease }) => ({ job_id, lease, outcome: "complete" }));
  if (settlements.length > 0) expect((await post("/v1/settlements", { settlements })).status).toBe(200);
}

/** Checks the signature of every notice received so far, and returns the notices. */
async function notices() {
  const requests = await inbox.requests(secret);
  for (const { headers, expectedSignature } of requests)
    expect(headers["webhook-signature"]).toBe(expectedSignature);
  return requests.map(({ body }) => noticeBody.parse(JSON.parse(body)));
}

const noticeTitles = async () =>
  (await notices()).map(
    ({ type, data }) =>
      `${type.replace("alarm.", "")} ${data.alarm} ${data.queue ?? "*"}/${data.job_type ?? "*"}`,
  );

describe("completion_rate_low of a queue", () => {
  const lowWatermark = { queue: "default", per_minute_below: 1, window_minutes: 1, for_rounds: 1 };
  const rounds = deployWith({ completion_rate_low: lowWatermark });

  test.each([
    ["the consumer stops", () => produce(3)],
    ["the producer stops", () => consume()],
    ["both stop", () => Promise.resolve()],
  ])("fires when %s, and resolves when work goes on", async (_, goesOn) => {
    await rounds.settledIn(() => produce(3).then(() => consume()));
    expect(await noticeTitles()).toEqual([]);
    await pass(2);
    await goesOn();
    await rounds.beat();
    await rounds.beat();
    expect(await noticeTitles()).toEqual(["firing completion_rate_low default/*"]);
    expect((await notices())[0]?.data).toMatchObject({ severity: "critical", value: 0, threshold: 1 });
    await produce(1);
    await consume();
    await rounds.beat();
    expect(await noticeTitles()).toEqual([
      "firing completion_rate_low default/*",
      "resolved completion_rate_low default/*",
    ]);
  });
});

describe("the canary", () => {
  const rounds = deployWith({});

  test("is in no list and no sum of jobs, unless a request names its queue", async () => {
    await rounds.settledIn();
    const body = async (path: string) => (await call(path)).json<Record<string, unknown>>();
    expect(await body("/v1/jobs")).toMatchObject({ jobs: [] });
    expect(await body("/v1/stats")).toMatchObject({ totals: { enqueued: 0 }, books: [], minutes: [] });
    for (const path of ["/v1/admin/queues", "/v1/admin/job-types"])
      expect(JSON.stringify(await body(path))).not.toContain("sluice");
    const canaries = await body("/v1/jobs?queue=sluice");
    expect(canaries.jobs).toMatchObject([{ status: "completed" }, { status: "completed" }]);
  });

  test("is enough while there are no jobs: no alarm fires in an idle night", async () => {
    await rounds.settledIn();
    for (let turn = 0; turn < 3; turn++) {
      await pass(4);
      await rounds.beat();
    }
    expect(await noticeTitles()).toEqual([]);
  });

  test("fires an alarm when it is not completed, even if all rounds run", async () => {
    await rounds.settledIn();
    await call("/v1/admin/queues/sluice/pause", { method: "POST" });
    await rounds.beat();
    await pass(7);
    await rounds.beat();
    await rounds.round("drain", "watch", "watch", "watch");
    expect(await noticeTitles()).toEqual(["firing completion_rate_low sluice/sluice.canary"]);
    await call("/v1/admin/queues/sluice/resume", { method: "POST" });
    await rounds.round("drain", "watch", "watch", "watch", "watch");
    expect(await noticeTitles()).toEqual([
      "firing completion_rate_low sluice/sluice.canary",
      "resolved completion_rate_low sluice/sluice.canary",
    ]);
  });
});

describe("when the producer outpaces the consumer", () => {
  test.each([
    ["queue_length_high", { above: 20, for_rounds: 1 }],
    ["queue_growing", { above: 20, window_minutes: 5, for_rounds: 1 }],
  ])("%s fires, and resolves when the consumer has caught up", async (alarm, rule) => {
    const rounds = deployWith({ [alarm]: rule });
    await rounds.settledIn();
    await produce(30);
    await consume(5);
    await rounds.beat();
    await rounds.beat();
    expect(await noticeTitles()).toEqual([`firing ${alarm} default/*`]);
    expect((await notices())[0]?.data).toMatchObject({ value: 25, threshold: 20 });
    await consume();
    await rounds.beat();
    expect(await noticeTitles()).toEqual([`firing ${alarm} default/*`, `resolved ${alarm} default/*`]);
  });
});

describe("an alarm fires for a single job", () => {
  const rounds = deployWith({ job_expired: { window_minutes: 1 } });

  test("that waits too long", async () => {
    await rounds.settledIn();
    const [id] = await produce(1);
    await query("update sluice.job set scheduled_at = now() - interval '16 min' where id = $1", [id]);
    await pass(1);
    await rounds.beat();
    await rounds.round("watch", "watch");
    expect(await noticeTitles()).toEqual(["firing oldest_pending_high default/*"]);
    await consume();
    await rounds.beat();
    await rounds.round("watch", "watch");
    expect(await noticeTitles()).toEqual([
      "firing oldest_pending_high default/*",
      "resolved oldest_pending_high default/*",
    ]);
  });

  test("that expires", async () => {
    await rounds.settledIn();
    const [id] = await produce(1);
    await query("update sluice.job set expires_at = now() where id = $1", [id]);
    await query("insert into sluice.expiry values (now(), $1)", [id]);
    await rounds.beat();
    await rounds.beat();
    expect(await noticeTitles()).toEqual(["firing job_expired default/remote"]);
    await call(`/v1/admin/dlq/${id}/discard`, { method: "POST" });
    await pass(3);
    await rounds.beat();
    expect(await noticeTitles()).toEqual([
      "firing job_expired default/remote",
      "resolved job_expired default/remote",
    ]);
  });
});

test("dead_letters fires for a type with dead jobs, and resolves when they are discarded", async () => {
  const rounds = deployWith({});
  await rounds.settledIn();
  const [id] = await enqueueMany("broken", [{}]);
  await rounds.beat();
  await rounds.beat();
  expect(await noticeTitles()).toEqual(["firing dead_letters default/broken"]);
  expect((await notices())[0]?.data.link).toBe("/v1/admin/dlq?type=broken");
  await call(`/v1/admin/dlq/${id}/discard`, { method: "POST" });
  await rounds.beat();
  expect(await noticeTitles()).toEqual([
    "firing dead_letters default/broken",
    "resolved dead_letters default/broken",
  ]);
});

test("breaker_open fires with the type's name, and resolves when the breaker closes", async () => {
  const rounds = deployWith({});
  await rounds.settledIn();
  await query("select sluice.open_breaker('broken')");
  await rounds.beat();
  await query("select sluice.close_breaker('broken')");
  await rounds.beat();
  expect(await noticeTitles()).toEqual(["firing breaker_open */broken", "resolved breaker_open */broken"]);
  expect((await notices())[1]?.data.summary).toMatch(/^over\. Last seen: type broken: most attempts failed/);
});

test("partition_blocked fires when a key stands still for too long, and resolves when its dead job is discarded", async () => {
  const rounds = deployWith({ dead_letters: { enabled: false } });
  await rounds.settledIn();
  const id = await deployment.enqueue({ type: "brief", partition_key: "customer 7" });
  await deployment.quiet();
  await rounds.beat();
  expect(await noticeTitles()).toEqual([]);
  await query("update sluice.closed set closed_at = closed_at - interval '16 minutes'");
  await rounds.beat();
  expect(await noticeTitles()).toEqual(["firing partition_blocked default/*"]);
  expect((await notices())[0]?.data).toMatchObject({
    severity: "warning",
    threshold: 900,
    link: "/v1/admin/queues/default/partitions?blocked=true",
    summary: expect.stringContaining("1 partition key is blocked, the longest for"),
  });
  expect((await notices())[0]?.data.summary).toContain(`by the dead job ${id}`);
  await call(`/v1/admin/dlq/${id}/discard`, { method: "POST" });
  await rounds.beat();
  expect(await noticeTitles()).toEqual([
    "firing partition_blocked default/*",
    "resolved partition_blocked default/*",
  ]);
});

describe("a flow", () => {
  const enqueueFlow = async () => {
    const flow = [
      { ref: "a", type: "remote", payload: {} },
      { ref: "b", type: "remote", payload: {}, after: ["a"] },
    ];
    const response = await call("/v1/flows", { method: "POST", body: JSON.stringify({ jobs: flow }) });
    expect(response.status).toBe(201);
    return ((await response.json()) as { flow_id: string }).flow_id;
  };

  test("raises no alarm while its jobs wait for each other", async () => {
    const rounds = deployWith({});
    await rounds.settledIn();
    await enqueueFlow();
    await rounds.beat();
    await consume();
    await rounds.beat();
    expect(await noticeTitles()).toEqual([]);
  });

  test("that makes no progress for a day raises flow_stalled, which resolves when it goes on", async () => {
    const rounds = deployWith({});
    await rounds.settledIn();
    const id = await enqueueFlow();
    await rounds.beat();
    expect(await noticeTitles()).toEqual([]);
    await query("update sluice.flow set changed_at = changed_at - interval '25 hours'");
    await rounds.beat();
    expect(await noticeTitles()).toEqual(["firing flow_stalled */*"]);
    expect((await notices())[0]?.data).toMatchObject({
      ...{ severity: "warning", threshold: 86_400, link: "/v1/flows" },
      summary: expect.stringContaining(`the flow ${id} has made no progress for 900`),
    });
    await consume(1);
    await rounds.beat();
    expect(await noticeTitles()).toEqual(["firing flow_stalled */*", "resolved flow_stalled */*"]);
  });

  test("with a job that waits for nothing raises jobs_unreachable, and the job goes on", async () => {
    const rounds = deployWith({});
    await rounds.settledIn();
    await enqueueFlow();
    await query("delete from sluice.edge");
    await rounds.beat();
    expect(await noticeTitles()).toEqual(["firing jobs_unreachable */*"]);
    expect((await notices())[0]?.data.summary).toBe(
      "the last reap rounds released 1 job that waited for nothing",
    );
    await consume();
    expect(await query("select from sluice.blocked")).toEqual([]);
    for (let round = 0; round < 5; round++) await rounds.round("reap");
    await rounds.beat();
    expect(await noticeTitles()).toEqual(["firing jobs_unreachable */*", "resolved jobs_unreachable */*"]);
  });
});

test("books_unbalanced fires when the books do not balance", async () => {
  const rounds = deployWith({});
  await rounds.settledIn();
  await produce(1);
  await query(
    "insert into sluice.ledger (lane, enqueued) select lane, 1 from sluice.lane where type = 'remote'",
  );
  await rounds.beat();
  expect(await noticeTitles()).toEqual(["firing books_unbalanced */*"]);
  await query("delete from sluice.ledger where enqueued = 1 and pending is null");
  await query(
    "update sluice.tally set enqueued = enqueued - 1 where enqueued > pending + leased + completed + dead",
  );
  await rounds.beat();
  expect(await noticeTitles()).toEqual(["firing books_unbalanced */*", "resolved books_unbalanced */*"]);
  expect((await notices())[1]?.data.summary).toBe("the books balance");
});

describe("when crons stop", () => {
  test("round_overdue fires for missing drain rounds, and resolves when they run again", async () => {
    const rounds = deployWith({});
    await rounds.settledIn();
    await pass(4);
    await rounds.round("reap", "watch", "watch", "watch");
    expect(await noticeTitles()).toEqual(["firing round_overdue */*"]);
    expect((await notices())[0]?.data.summary).toMatch(/^no drain round for 2\d\d s \(the limit is 180 s\)$/);
    await rounds.beat();
    await rounds.round("watch", "watch");
    expect(await noticeTitles()).toEqual(["firing round_overdue */*", "resolved round_overdue */*"]);
  });

  test("without any cron the heartbeat stops and /health is a 503", async () => {
    const listener = openInbox(bindings.RECEIVER_URL, "listener");
    const settings = { SLUICE_HEARTBEAT_URL: listener.url };
    const health = async () => {
      const response = await call("/health", {}, settings);
      return { code: response.status, ...(await response.json<{ checks: object }>()) };
    };
    for (const cron of Object.values(crons)) await fire(cron, settings);
    expect(await listener.requests()).toHaveLength(6);
    expect(await health()).toMatchObject({ code: 200 });
    await pass(7);
    expect(await listener.requests()).toHaveLength(6);
    const overdue = { database: "ok", drain: "overdue", reap: "overdue", watch: "overdue" };
    expect(await health()).toMatchObject({ code: 503, checks: overdue });
    for (const cron of Object.values(crons)) await fire(cron, settings);
    expect(await listener.requests()).toHaveLength(12);
    expect(await health()).toMatchObject({ code: 200 });
  });

  test("each round calls its heartbeat at the start and at the end, with the same id", async () => {
    const kinds = ["drain", "reap", "watch"] as const;
    const beats = Object.fromEntries(kinds.map((kind) => [kind, openInbox(bindings.RECEIVER_URL, kind)]));
    const urls = Object.fromEntries(kinds.map((kind) => [kind, `${beats[kind]?.url}?key=1`]));
    const settings = { SLUICE_HEARTBEAT_URL: JSON.stringify(urls) };
    const gone = { ...settings, DATABASE_URL: deployment.databaseUrl.replace(/[^/]+$/, "no_such_database") };
    for (const kind of kinds) {
      await fire(crons[kind], settings);
      await fire(crons[kind], gone).catch(() => {});
      const paths = (await beats[kind]?.requests())?.map(({ path }) => path.replace(/^\/inbox\/[^/?]+/, ""));
      const ids = paths?.map((path) => /rid=([0-9a-f-]{36})$/.exec(path)?.[1]);
      expect(paths?.map((path) => path.replace(/rid=.*/, ""))).toEqual([
        ...["/start?key=1&", "?key=1&", "/start?key=1&", "/fail?key=1&"],
      ]);
      expect(ids?.[0]).toBe(ids?.[1]);
      expect(ids?.[2]).toBe(ids?.[3]);
      expect(ids?.[0]).not.toBe(ids?.[2]);
    }
  });
});
