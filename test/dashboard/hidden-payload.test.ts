// A type that hides its payloads: no page shows them, and no statement of a page brings them.
import { neonConfig } from "@neondatabase/serverless";
import { afterEach, expect, test } from "vitest";
import * as z from "zod";
import { definePulledJob, defineType } from "../../src/index.ts";
import { adminCallsOf } from "../worker/admin-calls.ts";
import { useDeployment } from "../worker/deployment.ts";
import { note } from "./one-of-each.ts";
import { signedIn } from "./visitor.ts";

const payload = z.object({ iban: z.string() });
const payout = definePulledJob("payout", { payload, hidePayload: true });
const refund = definePulledJob(defineType("refund", { payload }), { hidePayload: true });
const deployment = useDeployment([note, payout, refund]);
afterEach(() => {
  neonConfig.fetchFunction = undefined;
});

const secret = "NL00 SECRET";

/** What the database answers while a page is made. */
function recordAnswers(): string[] {
  const answers: string[] = [];
  neonConfig.fetchFunction = async (url: string, init: RequestInit) => {
    const response = await fetch(url, init);
    answers.push(await response.clone().text());
    return response;
  };
  return answers;
}

test.each(["payout", "refund"])("the payload, the output and the steps of a %s are hidden", async (type) => {
  const { send } = adminCallsOf(deployment);
  const id = await deployment.enqueue({ type, payload: { iban: secret } });
  await send(`POST /v1/jobs/${id}/resolve`, { body: { output: { paid: secret } } });
  const admin = await signedIn(deployment, "admin");
  const answers = recordAnswers();
  for (const path of ["/jobs", `/jobs?type=${type}`, `/jobs/${id}`]) {
    const text = await admin.page(path);
    expect(text).toContain(type);
    expect(text).toContain("hidden");
    expect(text).not.toContain(secret);
  }
  expect(answers.length).toBeGreaterThan(3);
  expect(answers.join("\n")).not.toContain(secret);
});

test("those of other types are shown beside it", async () => {
  await deployment.enqueue({ type: "payout", payload: { iban: secret } });
  await deployment.enqueue({ type: "note", payload: { text: "in the open" } });
  const text = await (await signedIn(deployment, "viewer")).page("/jobs");
  expect(text).toContain("in the open");
  expect(text).not.toContain(secret);
});
