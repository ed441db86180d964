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
  const output = await work.run({ payload: { to: "a" }, errors: [], context: testContext(), ports });
  return { sent, output };
}

test("a pushed job is sent through the sender and the clock of its drain", async () => {
  const { sent, output } = await push({ json: '{"id":7}' });
  expect(sent).toMatchObject([{ method: "POST", url: "https://example.com/mail" }]);
  expect(JSON.parse(sent[0]?.body ?? "")).toMatchObject({ type: "mail", data: { to: "a" } });
  expect(output).toEqual({ id: 7 });
});

test("a pushed job fails by the status of its answer, and waits as long as that says", async () => {
  const busy = { status: 503, errorText: "later", retryInSeconds: 9 };
  await expect(push(busy)).rejects.toMatchObject({
    message: 'the endpoint of "mail" answered 503: later',
    retryInSeconds: 9,
  });
  await expect(push({ status: 410 })).rejects.toMatchObject({ name: "FatalError" });
});
