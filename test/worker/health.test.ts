// /health in workerd: what an uptime check gets when rounds or the database stop.
import { neonConfig } from "@neondatabase/serverless";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { defineJob } from "../../src/index.ts";
import { openInbox } from "../support/inbox.ts";
import { bindings, crons, useDeployment } from "./deployment.ts";

const deployment = useDeployment([defineJob("note", { payload: z.object({}), run: () => {} })]);
const { fire, query } = deployment;

async function look(settings: object = {}) {
  const response = await deployment.call("/health", { headers: {} }, settings);
  return { code: response.status, ...((await response.json()) as { status: string; checks: object }) };
}

const makeOlder = (kind: string, seconds: number) =>
  query(
    `update sluice.round
     set started_at = started_at - make_interval(secs => $2), ended_at = ended_at - make_interval(secs => $2)
     where kind = $1`,
    [kind, seconds],
  );

describe("/health", () => {
  test("is ok while rounds are on time, and a 503 when one is overdue", async () => {
    for (const cron of Object.values(crons)) await fire(cron);
    const checks = { database: "ok", drain: "ok", reap: "ok", watch: "ok", alarms: "ok", targets: "ok" };
    expect(await look()).toEqual({ code: 200, status: "ok", checks });
    await makeOlder("drain", 181);
    await makeOlder("reap", 350);
    expect(await look()).toEqual({ code: 503, status: "failing", checks: { ...checks, drain: "overdue" } });
    await makeOlder("watch", 361);
    expect((await look()).checks).toEqual({ ...checks, drain: "overdue", watch: "overdue" });
    await fire(crons.drain);
    await fire(crons.watch);
    expect((await look()).code).toBe(200);
  });

  test("uses the thresholds of the alarm round_overdue, changed ones too", async () => {
    const settings = { SLUICE_ALARM_RULES: { round_overdue: { above: 400 } } };
    for (const cron of Object.values(crons)) await fire(cron);
    await makeOlder("drain", 390);
    expect((await look()).checks).toMatchObject({ drain: "overdue" });
    expect((await look(settings)).checks).toMatchObject({ drain: "ok" });
    await makeOlder("drain", 20);
    expect((await look(settings)).checks).toMatchObject({ drain: "overdue" });
  });

  test("gives a new deployment a few minutes to start", async () => {
    await query("update sluice.migration set applied_at = now()");
    const starting = { drain: "starting", reap: "starting", watch: "starting" };
    expect(await look()).toMatchObject({ code: 200, status: "ok", checks: starting });
    await query("update sluice.migration set applied_at = now() - interval '1 hour'");
    expect(await look()).toMatchObject({ code: 503, checks: { drain: "overdue", reap: "overdue" } });
    await fire(crons.reap);
    expect(await look()).toMatchObject({ code: 200, checks: { ...starting, reap: "ok" } });
    await makeOlder("reap", 200);
    expect(await look()).toMatchObject({ code: 503, checks: { ...starting, reap: "ok", drain: "overdue" } });
  });

  test("is a 503 while a critical alarm fires; a failing target is shown and is no 503", async () => {
    const inbox = openInbox(bindings.RECEIVER_URL, "health");
    const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const settings = (severity: string) => ({
      SLUICE_ALARM_TARGETS: JSON.stringify([{ name: "ops", url: inbox.url, secret }]),
      SLUICE_ALARM_RULES: JSON.stringify({ queue_length_high: { above: 0, for_rounds: 1, severity } }),
    });
    await query("select sluice.enqueue('elsewhere')");
    await inbox.answer(500);
    for (const cron of Object.values(crons)) await fire(cron, settings("warning"));
    expect(await look(settings("warning"))).toMatchObject({
      code: 200,
      checks: { alarms: "ok", targets: "failing" },
    });
    await fire(crons.watch, settings("critical"));
    expect(await look(settings("critical"))).toMatchObject({
      code: 503,
      status: "failing",
      checks: { alarms: "critical" },
    });
  });

  test("answers within two seconds when the database never answers, and says only that", async () => {
    const startedMs = Date.now();
    const answer = await look({ SLUICE_NEON_ENDPOINT: `${bindings.RECEIVER_URL}/hang` });
    neonConfig.fetchEndpoint = bindings.SLUICE_NEON_ENDPOINT;
    expect(answer).toEqual({ code: 503, status: "unavailable", checks: { database: "unavailable" } });
    expect(Date.now() - startedMs).toBeLessThan(2000);
  });
});
