// Enqueues that fail through no fault of the caller are counted in the database once it can be reached.
import { neonConfig } from "@neondatabase/serverless";
import { expect, test } from "vitest";
import * as z from "zod";
import { defineJob } from "../../src/index.ts";
import { bindings, useDeployment } from "./deployment.ts";

const jobs = [defineJob("note", { payload: z.object({ n: z.number() }), run: () => {} })];
const deployment = useDeployment(jobs);
const deep = useDeployment(jobs, { SLUICE_MAX_DEPTH: "2" });
const post = (path: string, body: object, settings: object = {}) =>
  deployment.call(path, { method: "POST", body: JSON.stringify(body) }, settings);
const enqueue = (body: object, settings: object = {}) => post("/v1/jobs", body, settings);

/** The driver has one global endpoint. It is reset here for the tests' own queries. */
async function postOutOfReach(path: string, body: object): Promise<number> {
  const { status } = await post(path, body, { SLUICE_NEON_ENDPOINT: `${bindings.RECEIVER_URL}/answer/503` });
  neonConfig.fetchEndpoint = bindings.SLUICE_NEON_ENDPOINT;
  return status;
}

const written = () =>
  deployment.query<{ errors: number }>("select errors from sluice.enqueue_error order by at");

test("Sluice's errors are counted, the caller's are not; the next request writes the count", async () => {
  expect((await enqueue({ type: "note", payload: { n: "one" } })).status).toBe(400);
  expect((await enqueue({ type: "unknown" })).status).toBe(403);
  const job = { type: "note", payload: { n: 3 } };
  for (const path of ["/v1/jobs", "/v1/jobs"]) expect(await postOutOfReach(path, job)).toBe(503);
  expect(await postOutOfReach("/v1/jobs/batch", { jobs: [job] })).toBe(503);
  expect(await written()).toEqual([]);
  expect((await enqueue(job)).status).toBe(201);
  await deployment.quiet();
  expect(await written()).toEqual([{ errors: 3 }]);
  await deployment.call("/v1/stats");
  await deployment.quiet();
  expect(await written()).toEqual([{ errors: 3 }]);
});

test("enqueues refused for depth are counted, all of them with one write", async () => {
  await deep.enqueueMany("note", [{ n: 1 }, { n: 2 }]);
  const add = async () => {
    const { status } = await deep.call("/v1/jobs", {
      method: "POST",
      body: JSON.stringify({ type: "note", payload: { n: 1 } }),
    });
    await deep.quiet();
    return status;
  };
  expect(await add()).toBe(201); // the depth is read after the first response
  for (let n = 0; n < 20; n++) expect(await add()).toBe(429);
  expect(await deep.query("select errors from sluice.enqueue_error")).toEqual([{ errors: 1 }]);
});
