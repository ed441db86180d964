// Claims that wait for a first job, in workerd.
import { neonConfig } from "@neondatabase/serverless";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { problem } from "../../src/contract/problem.ts";
import { claimResponse, extensionsResponse } from "../../src/contract/work.ts";
import { definePulledJob } from "../../src/index.ts";
import { useDeployment } from "./deployment.ts";

const deployment = useDeployment([definePulledJob("print", { payload: z.object({}) })]);
const { call, enqueueMany, look, query, quiet } = deployment;
const post = (path: string, body: object, init: RequestInit = {}) =>
  call(path, { ...init, method: "POST", body: JSON.stringify(body) });

/** The claims that were sent to the database, and what to do when one has been answered. */
let claims = { sent: 0, onAnswer: () => {} };
beforeEach(() => {
  claims = { sent: 0, onAnswer: () => {} };
  neonConfig.fetchFunction = async (url: string, init: RequestInit) => {
    const isClaim = String(init.body).includes(".claim(");
    const response = await fetch(url, init);
    if (isClaim) {
      claims.sent++;
      claims.onAnswer();
    }
    return response;
  };
});
afterEach(() => {
  neonConfig.fetchFunction = undefined;
});

async function claim(fields: object, init: RequestInit = {}) {
  const response = await post("/v1/claims", { worker_id: "w1", ...fields }, init);
  expect(response.status).toBe(200);
  return claimResponse.parse(await response.json());
}

describe("a claim with wait_seconds", () => {
  test("answers at once if a job is due", async () => {
    await enqueueMany("print", [{}]);
    expect((await claim({ wait_seconds: 20 })).jobs).toHaveLength(1);
    expect(claims.sent).toBe(1);
  });

  test("answers when a job comes, before the time is over", async () => {
    const startedAt = Date.now();
    const waiting = claim({ wait_seconds: 20 });
    await expect.poll(() => claims.sent).toBe(1);
    const [id] = await enqueueMany("print", [{}]);
    expect((await waiting).jobs).toMatchObject([{ job_id: id, run: null, fair_key: null }]);
    expect(Date.now() - startedAt).toBeLessThan(15_000);
  });

  test("answers without jobs when the time is over", async () => {
    const startedAt = Date.now();
    expect(await claim({ wait_seconds: 1 })).toEqual({ jobs: [], has_more: false });
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(950);
    expect(claims.sent).toBe(2);
  });

  test("claims no more when its client has gone", async () => {
    const client = new AbortController();
    const waiting = claim({ wait_seconds: 20 }, { signal: client.signal });
    await expect.poll(() => claims.sent).toBe(1);
    client.abort();
    const [id = ""] = await enqueueMany("print", [{}]);
    expect((await waiting).jobs).toEqual([]);
    expect(claims.sent).toBe(1);
    expect(await look(id)).toMatchObject({ status: "pending" });
  });

  test("releases its jobs when its client has gone while the database answered", async () => {
    const client = new AbortController();
    const [id = ""] = await enqueueMany("print", [{}]);
    claims.onAnswer = () => client.abort();
    await claim({ wait_seconds: 20 }, { signal: client.signal });
    await quiet();
    expect(await look(id)).toMatchObject({ status: "pending", attempts: 0 });
  });

  test.each([
    [{ wait_seconds: 21 }, "wait_seconds"],
    [{ wait_seconds: -1 }, "wait_seconds"],
    [{ max_run: 0 }, "max_run"],
    [{ max_run: 1001 }, "max_run"],
  ])("refuses %o", async (fields, path) => {
    const response = await post("/v1/claims", { worker_id: "w1", ...fields });
    expect(response.status).toBe(400);
    expect(problem.parse(await response.json()).errors?.[0]?.path).toBe(path);
  });
});

test("a lease's generation rises with every claim of the job", async () => {
  await enqueueMany("print", [{}]);
  const generations: bigint[] = [];
  for (let n = 0; n < 2; n++) {
    const [job] = (await claim({})).jobs;
    generations.push(BigInt(job?.lease_generation ?? 0));
    await post(`/v1/jobs/${job?.job_id}/release`, { lease: job?.lease });
  }
  expect(generations[1]).toBeGreaterThan(generations[0] ?? 0n);
});

test("many leases are extended by one request, which says which of them are lost", async () => {
  await enqueueMany("print", [{}, {}, {}]);
  const { jobs } = await claim({ lease_seconds: 60 });
  const [first] = jobs;
  await post(`/v1/jobs/${first?.job_id}/complete`, { lease: first?.lease });
  const extensions = jobs.map(({ job_id, lease }) => ({ job_id, lease }));
  const response = await post("/v1/extensions", { extensions, lease_seconds: 900 });
  expect(response.status).toBe(200);
  const answer = extensionsResponse.parse(await response.json());
  expect(answer.extensions.map(({ job_id }) => job_id)).toEqual(jobs.map(({ job_id }) => job_id));
  const secondsLeft = answer.extensions.map(({ lease_expires_at }) =>
    lease_expires_at === null ? null : Math.round((Date.parse(lease_expires_at) - Date.now()) / 100_000),
  );
  expect(secondsLeft).toEqual([null, 9, 9]);
  const leases = await query("select from sluice.lease where deadline > now() + interval '800 s'");
  expect(leases).toHaveLength(1);
});
