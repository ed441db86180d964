// Pushed jobs in workerd, against a real HTTP endpoint: the requests, and what each answer does to the job.
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { definePushedJob } from "../../src/index.ts";
import type { ReceivedRequest } from "../support/received-request.ts";
import { bindings, useDeployment, type WorkerTestEnv } from "./deployment.ts";

const secrets = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"];
const output = JSON.stringify({ sent: [1, "ä"] });

const pushed = (type: string, path: string, options: { timeoutSeconds?: number } = {}) =>
  definePushedJob(type, {
    payload: z.record(z.string(), z.json()),
    url: (env: WorkerTestEnv) => `${env.RECEIVER_URL}${path}`,
    secret: secrets,
    fatalStatuses: [422],
    timeoutSeconds: 10,
    ...options,
  });

const { bringForward, enqueueMany, fire, look, call } = useDeployment([
  pushed("accepted", `/answer/200?body=${encodeURIComponent(output)}`),
  pushed("empty", "/answer/204"),
  pushed("text", "/answer/200?type=text/plain&body=thanks"),
  pushed("broken-json", "/answer/200?body={"),
  pushed("busy", "/answer/503?retry-after=7&body=later"),
  pushed("failing", "/answer/500?body=oops"),
  pushed("gone", "/answer/410"),
  pushed("unfit", "/answer/422?body=no+such+customer"),
  pushed("moved", "/redirect"),
  pushed("endless", "/endless"),
  pushed("endless-error", "/endless/500"),
  pushed("hanging", "/hang", { timeoutSeconds: 0.3 }),
  pushed("stalling", "/stall", { timeoutSeconds: 0.3 }),
  pushed("nul", `/answer/200?body=${encodeURIComponent('{"a":"\\u0000"}')}`),
  pushed("half-a-pair", `/answer/200?body=${encodeURIComponent('{"a":"\\ud800"}')}`),
  pushed("nul-in-error", "/answer/500?body=oops%00ps"),
]);

async function received(id: string, secret = ""): Promise<ReceivedRequest[]> {
  const url = `${bindings.RECEIVER_URL}/requests/${id}?secret=${encodeURIComponent(secret)}`;
  return (await fetch(url)).json();
}

async function pushedOnce(type: string, payload: object = {}, settings: object = {}) {
  const [id = ""] = await enqueueMany(type, [payload]);
  await fire("* * * * *", settings);
  return look(id);
}

const secondsUntil = (iso: string) => (Date.parse(iso) - Date.now()) / 1000;

describe("a pushed job", () => {
  test("is sent as a POST of its payload, signed with each secret as Standard Webhooks asks", async () => {
    const job = await pushedOnce("accepted", { name: "Zoë" });
    const [request, ...others] = await received(job.job_id, secrets[0]);
    const [second] = await received(job.job_id, secrets[1]);
    expect(others).toEqual([]);
    expect(request).toMatchObject({ method: "POST", headers: { "webhook-id": job.job_id } });
    expect(JSON.parse(request?.body ?? "")).toMatchObject({ type: "accepted", data: { name: "Zoë" } });
    expect(request?.headers["webhook-signature"]).toBe(
      `${request?.expectedSignature} ${second?.expectedSignature}`,
    );
    const ageSeconds = Date.now() / 1000 - Number(request?.headers["webhook-timestamp"]);
    expect(Math.abs(ageSeconds)).toBeLessThan(60);
  });

  test("is sent with the same id and trace on every attempt, and with the attempt's number", async () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const response = await call("/v1/jobs", {
      method: "POST",
      headers: {
        authorization: "Bearer sk_the_key_of_the_worker_tests",
        "content-type": "application/json",
        traceparent,
      },
      body: JSON.stringify({ type: "failing" }),
    });
    const { job_id: id } = await response.json<{ job_id: string }>();
    await expect.poll(async () => (await received(id)).length).toBe(1);
    await expect.poll(() => look(id)).toMatchObject({ status: "pending", attempts: 1 });
    await bringForward();
    await fire();
    const requests = await received(id);
    expect(requests.map(({ headers }) => headers["webhook-id"])).toEqual([id, id]);
    expect(requests.map(({ headers }) => headers["sluice-attempt"])).toEqual(["1", "2"]);
    expect(requests.map(({ headers }) => headers.traceparent)).toEqual([traceparent, traceparent]);
    const generations = requests.map(({ headers }) => Number(headers["sluice-lease-generation"]));
    expect(generations[1]).toBeGreaterThan(generations[0] ?? Number.NaN);
  });

  test("is completed by a 2xx; a small JSON answer becomes its output", async () => {
    expect(await pushedOnce("accepted")).toMatchObject({ status: "completed", output: JSON.parse(output) });
  });

  test.each(["empty", "text", "broken-json"])(
    "is completed without an output by a 2xx answer of this kind: %s",
    async (type) => {
      expect(await pushedOnce(type)).toMatchObject({ status: "completed", output: null });
    },
  );

  test("is retried after the answer's Retry-After; its error has the status and the body", async () => {
    const job = await pushedOnce("busy");
    expect(job).toMatchObject({
      status: "pending",
      attempts: 1,
      error: 'the endpoint of "busy" answered 503: later',
    });
    expect(secondsUntil(job.scheduled_at)).toBeGreaterThan(3);
    expect(secondsUntil(job.scheduled_at)).toBeLessThan(7.5);
  });

  test("is retried with the type's backoff after any other status", async () => {
    const job = await pushedOnce("failing");
    expect(job).toMatchObject({ status: "pending", error: 'the endpoint of "failing" answered 500: oops' });
    expect(secondsUntil(job.scheduled_at)).toBeGreaterThan(25);
  });

  test.each([
    [410, "gone"],
    [422, "unfit"],
  ])("is dead at once when the endpoint answers %i (%s)", async (status, type) => {
    const job = await pushedOnce(type);
    expect(job).toMatchObject({ status: "dead", dead_reason: "fatal", attempts: 1 });
    expect(job.error).toContain(`answered ${status}`);
  });

  test("fails on a redirect instead of following it", async () => {
    const job = await pushedOnce("moved");
    expect(job).toMatchObject({
      status: "pending",
      attempts: 1,
      error: 'the endpoint of "moved" answered 307',
    });
    expect((await received(job.job_id)).map(({ path }) => path)).toEqual(["/redirect"]);
  });

  test("cuts off an endless answer", async () => {
    expect(await pushedOnce("endless")).toMatchObject({ status: "completed", output: null });
    const failed = await pushedOnce("endless-error");
    expect(failed).toMatchObject({ status: "pending", attempts: 1 });
    expect(failed.error?.length).toBeLessThan(600);
  });

  test.each(["hanging", "stalling"])("fails at its timeout when the endpoint is %s", async (type) => {
    expect(await pushedOnce(type)).toMatchObject({
      status: "pending",
      attempts: 1,
      error: "timed out after 0.3 s",
    });
  });

  test.each(["nul", "half-a-pair"])(
    "is dead if its answer cannot be stored, and the other jobs are settled: %s",
    async (type) => {
      const neighbours = await enqueueMany("accepted", [{}, {}]);
      const job = await pushedOnce(type);
      expect(job).toMatchObject({ status: "dead", dead_reason: "fatal", attempts: 1 });
      expect(job.error).toContain('the output cannot be kept: "a" is a text with a NUL character or half');
      for (const id of neighbours) expect(await look(id)).toMatchObject({ status: "completed", attempts: 1 });
    },
  );

  test("is retried after an error that contains a NUL, and the other jobs are settled", async () => {
    const neighbours = await enqueueMany("accepted", [{}, {}]);
    const job = await pushedOnce("nul-in-error");
    expect(job).toMatchObject({
      status: "pending",
      attempts: 1,
      error: 'the endpoint of "nul-in-error" answered 500: oops\uFFFDps',
    });
    for (const id of neighbours) expect(await look(id)).toMatchObject({ status: "completed", attempts: 1 });
  });

  test("is not sent to a private address unless the deployment allows it", async () => {
    const job = await pushedOnce("accepted", {}, { SLUICE_ALLOW_PRIVATE_TARGETS: "false" });
    expect(job).toMatchObject({ status: "dead", dead_reason: "fatal" });
    expect(job.error).toContain("must be an https URL");
    const overHttps = { RECEIVER_URL: bindings.RECEIVER_URL.replace("http:", "https:") };
    const secure = await pushedOnce("accepted", {}, { SLUICE_ALLOW_PRIVATE_TARGETS: "false", ...overHttps });
    expect(secure.error).toContain("must not be a private address");
    expect(await received(job.job_id)).toEqual([]);
    expect(await received(secure.job_id)).toEqual([]);
  });
});
