// Pushed types: a job is sent as an HTTP request, and the response decides its outcome.
import { expect, test } from "vitest";
import * as z from "zod";
import { definePushedJob } from "../../src/jobs/define-pushed.ts";
import type { Answer, OutgoingRequest } from "../../src/queue/ports.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { testContext } from "../support/run-type.ts";

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const { work } = definePushedJob("mail", {
  payload: z.object({ to: z.string() }),
  url: "https://example.com/mail",
  secret,
});

async function push(answer: Partial<Answer>) {
  const sent: OutgoingRequest[] = [];
  const send = async (request: OutgoingRequest) => {
    sent.push(request);
    return { status: 200, retryInSeconds: undefined, errorText: "", ...answer };
  };
  if (work.kind !== "single") throw new Error("a pushed job runs one by one");
  const ports = { clock: createManualClock(), sender: { send } };
  const output = await work.run({
    payload: { to: "a" },
    errors: [],
    blockers: {},
    context: testContext(),
    ports,
  });
  return { sent, output };
}

test("a pushed job is sent with its drain's sender, and the response is its output", async () => {
  const { sent, output } = await push({ json: '{"id":7}' });
  expect(sent).toMatchObject([{ method: "POST", url: "https://example.com/mail" }]);
  expect(JSON.parse(sent[0]?.body ?? "")).toMatchObject({ type: "mail", data: { to: "a" } });
  expect(output).toEqual({ id: 7 });
});

test("an error status fails the job, and its Retry-After sets the time of the retry", async () => {
  const busy = { status: 503, errorText: "later", retryInSeconds: 9 };
  await expect(push(busy)).rejects.toMatchObject({
    message: 'the endpoint of "mail" answered 503: later',
    retryInSeconds: 9,
  });
  await expect(push({ status: 410 })).rejects.toMatchObject({ name: "FatalError" });
});
