// Durable steps: their waterfall on the page of the job and on that of its flow.
import { beforeEach, expect, test } from "vitest";
import * as z from "zod";
import { claimResponse } from "../../src/contract/work.ts";
import { definePulledJob } from "../../src/index.ts";
import { adminCallsOf } from "../worker/admin-calls.ts";
import { useDeployment } from "../worker/deployment.ts";
import { note } from "./one-of-each.ts";
import { signedIn, type Visitor } from "./visitor.ts";

const payout = definePulledJob("payout", { payload: z.object({ text: z.string() }), hidePayload: true });
const deployment = useDeployment([note, payout]);
const { ask, send } = adminCallsOf(deployment);
let viewer: Visitor;
beforeEach(async () => {
  viewer = await signedIn(deployment, "viewer");
});

const plain = (html: string) =>
  html
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll("&quot;", '"')
    .replaceAll(/\s+/g, " ");
const rowOf = (html: string, name: string) =>
  html.split("<tr>").find((row) => plain(row.split("<td")[0] ?? "").includes(name)) ?? "";

/** A flow of one job that has run a step for 1,500 ms and sleeps for an hour. */
async function startFlow(type: string): Promise<{ flow: string; id: string }> {
  const jobs = [{ ref: "a", type, payload: { text: "a" } }];
  const response = await send("POST /v1/flows", { body: { jobs } });
  const { flow_id: flow } = z.object({ flow_id: z.string() }).parse(await response.json());
  const claimed = await ask("POST /v1/claims", claimResponse, { worker_id: "w", types: [type], limit: 1 });
  const [{ job_id: id, lease } = { job_id: "", lease: "" }] = claimed.jobs;
  const steps = [
    { name: "charge", value: { paid: "a long value that is folded" }, took_ms: 1500 },
    { name: "sleep:night", seconds: 3600 },
  ];
  const stored = await send(`POST /v1/jobs/${id}/steps`, { body: { lease, steps } });
  expect(stored.status, await stored.text()).toBe(200);
  return { flow, id };
}

test("the page of a job draws each step, with how long it took and what it returned", async () => {
  const { id } = await startFlow("note");
  const html = await viewer.page(`/jobs/${id}`);
  const charge = rowOf(html, "charge");
  expect(charge).toMatch(/<rect class="k-completed" x="0%" width="[\d.]+%"/);
  expect(plain(charge)).toMatch(/charge .*1\.5 s .*\{"paid":"a long value th… /);
  expect(charge).toContain("a long value that is folded");
  const night = rowOf(html, "night");
  expect(night).toMatch(/<rect class="k-later wait" x="[\d.]+%" width="9[\d.]+%"/);
  expect(plain(night)).toMatch(/night sleeps .*1 h/);
  expect(night).toMatch(/<line x1="[\d.]+%"/); // now
  expect(plain(html)).toContain("2 durable steps");
});

test("the page of a flow draws the steps below their job", async () => {
  const { flow } = await startFlow("note");
  const html = await viewer.page(`/flows/${flow}`);
  expect(html.match(/class="fall"/g)).toHaveLength(3);
  expect(plain(rowOf(html, "charge"))).toContain("1.5 s");
  expect(html.indexOf(">note<")).toBeLessThan(html.indexOf("charge"));
  expect(html).not.toContain("a long value");
});

test("steps of an older release have no times, so they have no bars", async () => {
  const { id } = await startFlow("note");
  await deployment.query("update sluice.checkpoint set stored_at = null, took_ms = null");
  const html = await viewer.page(`/jobs/${id}`);
  expect(html).not.toContain('class="fall"');
  expect(plain(rowOf(html, "charge"))).toContain("not known");
});

test("the steps of a type that hides its payloads are on neither page", async () => {
  const { flow, id } = await startFlow("payout");
  for (const path of [`/jobs/${id}`, `/flows/${flow}`]) {
    const html = await viewer.page(path);
    expect(html).toContain("payout");
    expect(html).not.toContain("charge");
  }
});
