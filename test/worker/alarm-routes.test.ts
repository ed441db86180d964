// The admin's view of alarms in workerd: states and targets, the test notice, silences.
import { beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import {
  alarmHistoryPage,
  alarmsResponse,
  noticeBody,
  silenceOneResponse,
  silenceResponse,
  type TestNoticeResponse,
  testNoticeResponse,
} from "../../src/contract/alarms.ts";
import { alarmNames } from "../../src/core/alarms/alarm.ts";
import { defineJob, FatalError } from "../../src/index.ts";
import { type Inbox, openInbox } from "../support/inbox.ts";
import { adminCallsOf, refusal } from "./admin-calls.ts";
import { bindings, crons, useDeployment } from "./deployment.ts";

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const deployment = useDeployment([
  defineJob("broken", {
    payload: z.object({}),
    run: () => {
      throw new FatalError("down");
    },
  }),
]);
const { enqueueMany, fire } = deployment;
const { newestAudit, send } = adminCallsOf(deployment);
let ops: Inbox;
let chat: Inbox;
beforeEach(() => {
  ops = openInbox(bindings.RECEIVER_URL, "ops");
  chat = openInbox(bindings.RECEIVER_URL, "chat");
});

const settings = () => ({
  SLUICE_PUBLIC_URL: "https://sluice.example",
  SLUICE_ALARM_TARGETS: JSON.stringify([
    { name: "ops", url: ops.url, format: "generic", secret },
    { name: "chat", url: chat.url, format: "slack" },
  ]),
});

async function ask<Schema extends z.ZodType>(request: string, schema: Schema, body?: object) {
  const response = await send(request, { settings: settings(), ...(body ? { body } : {}) });
  expect(response.status).toBe(200);
  return schema.parse(await response.json());
}

const look = () => ask("GET /v1/admin/alarms", alarmsResponse);
const sendTest = (body?: object): Promise<TestNoticeResponse> =>
  ask("POST /v1/admin/alarms/test", testNoticeResponse, body);

async function bury(): Promise<void> {
  await enqueueMany("broken", [{}]);
  await fire(crons.drain, settings());
  await fire(crons.watch, settings());
}

describe("GET /v1/admin/alarms", () => {
  test("shows each alarm's state, its reading and its runbook", async () => {
    expect((await look()).alarms).toEqual([]);
    await bury();
    expect((await look()).alarms).toEqual([
      {
        alarm: "dead_letters",
        queue: "default",
        job_type: "broken",
        state: "firing",
        severity: "warning",
        value: 1,
        threshold: 0,
        since: expect.any(String),
        changed_at: expect.any(String),
        summary: "type broken in queue default: 1 dead letter",
        link: "https://sluice.example/v1/admin/dlq?type=broken",
        runbook: null,
        silenced_until: null,
      },
    ]);
  });

  test("shows the rules in force", async () => {
    const { rules } = await look();
    expect(rules).toHaveLength(alarmNames.length);
    expect(rules[0]).toMatchObject({
      alarm: "completion_rate_low",
      queue: "sluice",
      job_type: "sluice.canary",
    });
  });

  test("shows the state of each target, but no URLs and no secrets", async () => {
    await ops.answer(500);
    await bury();
    const response = await send("GET /v1/admin/alarms", { settings: settings() });
    const text = await response.text();
    expect(text).not.toContain(secret);
    expect(text).not.toContain(ops.url);
    expect(alarmsResponse.parse(JSON.parse(text)).targets).toMatchObject([
      { name: "ops", state: "failing", status: 500, error: "answered 500", pending_deliveries: 1 },
      { name: "chat", state: "ok", status: 200, error: null, pending_deliveries: 0 },
    ]);
    expect(JSON.stringify(await deployment.query("select * from sluice.alarm_target"))).not.toContain(
      ops.url,
    );
  });
});

describe("a test notice", () => {
  test("is sent at once and signed; the response and the audit have each target's answer", async () => {
    await chat.answer(503);
    const { targets } = await sendTest();
    expect(targets).toEqual([
      { target: "ops", delivered: true, status: 200, error: null, ms: expect.any(Number) },
      { target: "chat", delivered: false, status: 503, error: "answered 503", ms: expect.any(Number) },
    ]);
    const [request] = await ops.requests(secret);
    expect(request?.headers["webhook-signature"]).toBe(request?.expectedSignature);
    expect(noticeBody.parse(JSON.parse(request?.body ?? ""))).toMatchObject({
      type: "alarm.test",
      data: { alarm: "test", severity: "info" },
    });
    expect(await newestAudit()).toMatchObject({
      actor: "admin",
      action: "test alarms",
      after: {
        targets: [
          { target: "ops", status: 200 },
          { target: "chat", status: 503 },
        ],
      },
    });
  });

  test("goes only to the target that the request names", async () => {
    expect((await sendTest({ target: "chat" })).targets).toMatchObject([{ target: "chat", delivered: true }]);
    expect(await ops.requests()).toEqual([]);
    const unknown = await send("POST /v1/admin/alarms/test", {
      settings: settings(),
      body: { target: "nobody" },
    });
    expect(await refusal(unknown)).toMatchObject({ status: 404 });
  });

  test("switches off a target that answers 410, and switches it on again after a 200", async () => {
    await ops.answer(410);
    await sendTest({ target: "ops" });
    expect((await look()).targets[0]).toMatchObject({ state: "off", off_since: expect.any(String) });
    await ops.answer(200);
    await sendTest({ target: "ops" });
    expect((await look()).targets[0]).toMatchObject({ state: "ok", delivered_at: expect.any(String) });
  });

  test("without any target is no error", async () => {
    const response = await send("POST /v1/admin/alarms/test");
    expect(await response.json()).toEqual({ targets: [] });
  });
});

test("the notice's schema is published", async () => {
  const document = await (await send("GET /openapi.json")).json<{
    webhooks: { alarm: { post: { requestBody: { content: Record<string, { schema: object }> } } } };
  }>();
  expect(document.webhooks.alarm.post.requestBody.content["application/json"]?.schema).toMatchObject({
    type: "object",
    properties: { type: { enum: ["alarm.firing", "alarm.resolved", "alarm.test"] } },
    required: ["type", "timestamp", "data"],
  });
});

describe("a silence", () => {
  test("holds back an alarm's notices until its end, and is listed and audited", async () => {
    const until = new Date(Date.now() + 3_600_000).toISOString();
    expect(
      await ask("POST /v1/admin/alarms/silences", silenceResponse, { alarm: "dead_letters", until }),
    ).toEqual({
      alarm: "dead_letters",
      until,
    });
    await bury();
    expect(await ops.requests()).toEqual([]);
    expect(await look()).toMatchObject({
      alarms: [{ alarm: "dead_letters", state: "firing" }],
      silences: [{ alarm: "dead_letters", until }],
    });
    expect(await newestAudit()).toMatchObject({ action: "silence", target: "alarm dead_letters" });
  });

  test("for some minutes, with a reason, is shown with its alarm, in the history, and can be ended", async () => {
    const path = "POST /v1/admin/alarms/dead_letters";
    const { silenced_until } = await ask(`${path}/silence`, silenceOneResponse, {
      minutes: 30,
      reason: "INC-482",
    });
    expect(Date.parse(silenced_until ?? "")).toBeGreaterThan(Date.now() + 29 * 60_000);
    await bury();
    expect(await ops.requests()).toEqual([]);
    expect(await look()).toMatchObject({
      alarms: [{ alarm: "dead_letters", state: "firing", silenced_until }],
      silences: [{ alarm: "dead_letters", until: silenced_until, reason: "INC-482" }],
    });
    expect(await ask(`${path}/unsilence`, silenceOneResponse, {})).toEqual({
      alarm: "dead_letters",
      silenced_until: null,
    });
    expect((await look()).alarms).toMatchObject([{ silenced_until: null }]);
    const first = await ask("GET /v1/admin/alarms/history?limit=2", alarmHistoryPage);
    const second = await ask(`GET /v1/admin/alarms/history?cursor=${first.next_cursor}`, alarmHistoryPage);
    expect([...first.events, ...second.events].slice(0, 3)).toMatchObject([
      { event: "unsilenced", until: null },
      { event: "firing", alarm: "dead_letters", severity: "warning", summary: expect.any(String) },
      { event: "silenced", until: silenced_until, reason: "INC-482", actor: expect.any(String) },
    ]);
    expect(await newestAudit()).toMatchObject({ action: "silence", target: "alarm dead_letters" });
  });

  test.each([
    [{}, "minutes"],
    [{ minutes: 5, until: "2030-01-01T00:00:00Z" }, "minutes"],
    [{ minutes: 0 }, "minutes"],
    [{ until: "2020-01-01T00:00:00Z" }, "until"],
    [{ minutes: 5, reason: "" }, "reason"],
  ])("of one alarm with the body %j is refused, and changes nothing", async (body, path) => {
    const before = await look();
    const response = await send("POST /v1/admin/alarms/dead_letters/silence", { body });
    expect(await refusal(response)).toEqual({ status: 400, paths: [path] });
    expect(await look()).toEqual(before);
  });

  test("of an alarm that does not exist is a 404", async () => {
    for (const verb of ["silence", "unsilence"]) {
      const response = await send(`POST /v1/admin/alarms/noise/${verb}`, {
        body: verb === "silence" ? { minutes: 1 } : {},
      });
      expect(await refusal(response)).toMatchObject({ status: 404 });
    }
  });

  test.each([
    [{ alarm: "noise", until: "2030-01-01T00:00:00Z" }, "alarm"],
    [{ alarm: "dead_letters", until: "tomorrow" }, "until"],
    [{ alarm: "dead_letters" }, "until"],
  ])("with the body %j is refused", async (body, path) => {
    expect(await refusal(await send("POST /v1/admin/alarms/silences", { body }))).toEqual({
      status: 400,
      paths: [path],
    });
  });
});
