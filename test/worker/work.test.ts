// The pull API: workers outside Cloudflare claim jobs and report their outcomes.
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { jobTypesResponse } from "../../src/contract/admin.ts";
import { jobResponse } from "../../src/contract/jobs.ts";
import { problem } from "../../src/contract/problem.ts";
import { claimResponse, settlementsResponse } from "../../src/contract/work.ts";
import { defineJob, definePulledJob } from "../../src/index.ts";
import { useDeployment } from "./deployment.ts";

const deployment = useDeployment([
  definePulledJob("print", {
    payload: z.object({ page: z.number() }),
    backoff: { baseSeconds: 7, jitterSeconds: 0 },
  }),
  definePulledJob("narrow", { payload: z.object({}), concurrency: 2 }),
  defineJob("own", { payload: z.object({}), run: () => {} }),
]);
const { call, enqueueMany, fire, look, query } = deployment;
const post = (path: string, body: object) => call(path, { method: "POST", body: JSON.stringify(body) });

async function claim(fields: object = {}) {
  const response = await post("/v1/claims", { worker_id: "w1", ...fields });
  expect(response.status).toBe(200);
  return claimResponse.parse(await response.json());
}

async function claimOne(fields: object = {}) {
  const [job] = (await claim({ limit: 1, ...fields })).jobs;
  if (!job) throw new Error("nothing was claimed");
  return job;
}

const pages = (count: number) => Array.from({ length: count }, (_, page) => ({ page }));

test.each([
  ["a NUL in an output", { outcome: "complete", output: { a: "\0" } }],
  ["half a surrogate pair in an output", { outcome: "complete", output: ["\ud800"] }],
  ["a NUL in an error", { outcome: "fail", error: "a\0b" }],
  ["half a surrogate pair in an error", { outcome: "fail", error: "\udc00" }],
])("%s is refused before anything is settled", async (_, bad) => {
  await enqueueMany("print", pages(2));
  const { jobs } = await claim();
  const settlements = jobs.map(({ job_id, lease }, index) => ({
    job_id,
    lease,
    ...(index === 0 ? bad : { outcome: "complete" }),
  }));
  expect((await post("/v1/settlements", { settlements })).status).toBe(400);
  for (const { job_id } of jobs) expect(await look(job_id)).toMatchObject({ status: "processing" });
});

describe("claiming", () => {
  test("returns due jobs with a lease, and says whether there are more", async () => {
    await enqueueMany("print", pages(3));
    const first = await claim({ limit: 2, lease_seconds: 60 });
    expect(first.has_more).toBe(true);
    expect(first.jobs.map((job) => job.payload)).toEqual([{ page: 0 }, { page: 1 }]);
    expect(first.jobs[0]).toMatchObject({
      type: "print",
      queue: "default",
      attempt: 1,
      max_attempts: 5,
      errors: [],
    });
    expect(Date.parse(first.jobs[0]?.lease_expires_at ?? "") - Date.now()).toBeGreaterThan(50_000);
    expect(await claim()).toMatchObject({ has_more: false, jobs: [{ payload: { page: 2 } }] });
    expect(await claim()).toEqual({ jobs: [], has_more: false });
  });

  test("returns only jobs of the requested queue and types; drains do not run pulled types", async () => {
    await enqueueMany("print", pages(1));
    await enqueueMany("own", [{}]);
    await enqueueMany("print", pages(1), { queue: "side" });
    await fire();
    expect((await claim({ types: ["own"] })).jobs).toEqual([]);
    expect((await claim({ queue: "side" })).jobs).toHaveLength(1);
    expect((await claim({ types: ["print", "own"] })).jobs).toHaveLength(1);
  });

  test("never returns Sluice's own jobs, and refuses requests for them", async () => {
    await query('select sluice.enqueue_jobs(\'[{"type": "sluice.canary", "queue": "sluice"}]\')');
    expect((await claim({ queue: "sluice" })).jobs).toEqual([]);
    const request = { worker_id: "w1", queue: "sluice", types: ["sluice.canary"] };
    expect((await post("/v1/claims", request)).status).toBe(403);
    const [canary] = await query<{ id: string }>("select id from sluice.jobs where type = 'sluice.canary'");
    expect((await post(`/v1/jobs/${canary?.id}/cancel`, {})).status).toBe(403);
  });

  test("keeps to a type's limits across all pullers", async () => {
    await enqueueMany("narrow", [{}, {}, {}, {}]);
    const claims = await Promise.all(Array.from({ length: 6 }, () => claim({ limit: 10 })));
    expect(claims.flatMap((answer) => answer.jobs)).toHaveLength(2);
  });

  test.each([
    [{}, "worker_id"],
    [{ worker_id: "w", limit: 1001 }, "limit"],
    [{ worker_id: "w", lease_seconds: 59 }, "lease_seconds"],
    [{ worker_id: "w", types: [] }, "types"],
  ])("refuses %o", async (body, path) => {
    const response = await post("/v1/claims", body);
    expect(response.status).toBe(400);
    expect(problem.parse(await response.json()).errors?.[0]?.path).toBe(path);
  });
});

describe("one claimed job", () => {
  test("is completed with its output", async () => {
    await enqueueMany("print", pages(1));
    const { job_id, lease } = await claimOne();
    const response = await post(`/v1/jobs/${job_id}/complete`, { lease, output: { sheets: 2 } });
    expect(response.status).toBe(200);
    expect(jobResponse.parse(await response.json())).toMatchObject({
      status: "completed",
      output: { sheets: 2 },
    });
  });

  test("that fails is retried after its type's backoff or at the worker's time, or is buried", async () => {
    await enqueueMany("print", pages(3));
    const { jobs } = await claim({ limit: 3 });
    const bodies = [
      { error: "jam" },
      { error: "jam", retry_in_seconds: 60 },
      { error: "no paper", fatal: true },
    ];
    const answers = await Promise.all(
      jobs.map(async ({ job_id, lease }, index) => {
        const response = await post(`/v1/jobs/${job_id}/fail`, { lease, ...bodies[index] });
        expect(response.status).toBe(200);
        return jobResponse.parse(await response.json());
      }),
    );
    const waits = answers.map((job) => Math.round((Date.parse(job.scheduled_at) - Date.now()) / 1000));
    expect(answers.map((job) => job.status)).toEqual(["pending", "pending", "dead"]);
    expect(waits.slice(0, 2)).toEqual([7, 60]);
    expect(answers[2]).toMatchObject({ dead_reason: "fatal", error: "no paper" });
  });

  test("can be released without counting the attempt, and its lease can be extended", async () => {
    await enqueueMany("print", pages(1));
    const { job_id, lease } = await claimOne({ lease_seconds: 60 });
    const extended = await post(`/v1/jobs/${job_id}/extend`, { lease, lease_seconds: 900 });
    expect(extended.status).toBe(200);
    const { lease_expires_at } = (await extended.json()) as { lease_expires_at: string };
    expect(Date.parse(lease_expires_at) - Date.now()).toBeGreaterThan(800_000);
    expect((await post(`/v1/jobs/${job_id}/release`, { lease })).status).toBe(200);
    expect(await look(job_id)).toMatchObject({ status: "pending", attempts: 0 });
  });

  test("cannot be settled by a worker whose lease ran out", async () => {
    await enqueueMany("print", pages(1));
    const old = await claimOne({ lease_seconds: 60 });
    await query("update sluice.lease set deadline = now() - interval '1 s'");
    await fire("*/2 * * * *");
    await deployment.bringForward();
    const fresh = await claimOne();
    expect(fresh).toMatchObject({ job_id: old.job_id, attempt: 2 });
    for (const verb of ["complete", "release", "fail", "extend"]) {
      const fields = verb === "fail" ? { error: "late" } : verb === "extend" ? { lease_seconds: 60 } : {};
      const response = await post(`/v1/jobs/${old.job_id}/${verb}`, { lease: old.lease, ...fields });
      expect(response.status, verb).toBe(409);
      expect(problem.parse(await response.json()).type).toBe("urn:sluice:problem:lease_lost");
    }
    expect((await post(`/v1/jobs/${old.job_id}/complete`, { lease: fresh.lease })).status).toBe(200);
  });

  test("can be settled again with the same lease, as after a lost answer: the answer says repeated", async () => {
    await enqueueMany("print", pages(3));
    const { jobs } = await claim({ limit: 3 });
    const bodies = [
      { output: 1 },
      { error: "jam", retry_in_seconds: 60 },
      { error: "no paper", fatal: true },
    ];
    const verbs = ["complete", "fail", "fail"];
    const settle = (index: number) =>
      post(`/v1/jobs/${jobs[index]?.job_id}/${verbs[index]}`, {
        lease: jobs[index]?.lease,
        ...bodies[index],
      });
    for (const index of [0, 1, 2]) {
      expect((await settle(index)).status).toBe(200);
      const again = await settle(index);
      expect(again.status).toBe(409);
      expect(problem.parse(await again.json()).type).toBe("urn:sluice:problem:already_settled");
    }
    const [completed, failed] = jobs;
    const other = await post(`/v1/jobs/${completed?.job_id}/fail`, {
      lease: completed?.lease,
      error: "late",
    });
    const late = await post(`/v1/jobs/${failed?.job_id}/complete`, { lease: failed?.lease });
    for (const response of [other, late])
      expect(problem.parse(await response.json()).type).toBe("urn:sluice:problem:lease_lost");
  });

  test("that another lease has settled is not answered as repeated, replayed or not", async () => {
    await enqueueMany("print", pages(1));
    const old = await claimOne({ lease_seconds: 60 });
    const settlement = { job_id: old.job_id, lease: old.lease, outcome: "complete" };
    const settleOld = async () =>
      (
        (await (await post("/v1/settlements", { settlements: [settlement] })).json()) as {
          settlements: object[];
        }
      ).settlements;
    await query("update sluice.lease set deadline = now() - interval '1 s'");
    await fire("*/2 * * * *");
    expect(await settleOld()).toEqual([
      { job_id: old.job_id, status: "pending", applied: false, repeated: false },
    ]);
    await deployment.bringForward();
    const second = await claimOne();
    await post(`/v1/jobs/${old.job_id}/fail`, { lease: second.lease, error: "jam", fatal: true });
    expect(await settleOld()).toEqual([
      { job_id: old.job_id, status: "dead", applied: false, repeated: false },
    ]);
    await post(`/v1/admin/dlq/${old.job_id}/replay`, {});
    const third = await claimOne();
    expect(await settleOld()).toEqual([
      { job_id: old.job_id, status: "processing", applied: false, repeated: false },
    ]);
    await post(`/v1/jobs/${old.job_id}/complete`, { lease: third.lease });
    expect(third.attempt).toBe(old.attempt);
    expect(await settleOld()).toEqual([
      { job_id: old.job_id, status: "completed", applied: false, repeated: false },
    ]);
  });

  test("is a 404 if the job is unknown, and a 400 if the lease is malformed", async () => {
    await enqueueMany("print", pages(1));
    const { job_id, lease } = await claimOne();
    expect((await post("/v1/jobs/019a0000-0000-7000-8000-000000000000/complete", { lease })).status).toBe(
      404,
    );
    expect((await post(`/v1/jobs/${job_id}/complete`, { lease: "made-up" })).status).toBe(400);
    expect(await look(job_id)).toMatchObject({ status: "processing" });
  });
});

describe("a lease that a worker has changed", () => {
  const changed = (lease: string, change: (fields: unknown[]) => unknown[]) =>
    btoa(JSON.stringify(change(JSON.parse(atob(lease.replaceAll("-", "+").replaceAll("_", "/"))))));
  const isOpen = async () =>
    (await query<{ open: boolean }>("select closed_at is null as open from sluice.breaker"))[0]?.open;

  test("does not settle a job that another worker holds", async () => {
    await enqueueMany("print", pages(2));
    const [mine, other] = [await claimOne(), await claimOne({ worker_id: "w2" })];
    const guesses = [
      mine.lease,
      changed(other.lease, ([key, ...rest]) => [`${String(key).slice(0, 18)}-8000-000000000000`, ...rest]),
    ];
    for (const lease of guesses)
      expect((await post(`/v1/jobs/${other.job_id}/complete`, { lease })).status).toBe(409);
    expect(await look(other.job_id)).toMatchObject({ status: "processing" });
  });

  test("does not close a breaker by pretending that its job was a probe", async () => {
    await enqueueMany("print", pages(1));
    const { job_id, lease } = await claimOne();
    await query("select sluice.open_breaker('print')");
    const forged = changed(lease, ([key, type, attempt]) => [key, type, attempt, true]);
    expect((await post(`/v1/jobs/${job_id}/complete`, { lease: forged })).status).toBe(200);
    expect(await isOpen()).toBe(true);
  });

  test("is not needed: a real probe closes the breaker", async () => {
    await enqueueMany("print", pages(1));
    await query("select sluice.open_breaker('print')");
    await query(
      "update sluice.breaker set probed_at = now() - interval '61 s', opened_at = now() - interval '61 s'",
    );
    const { job_id, lease } = await claimOne();
    expect((await post(`/v1/jobs/${job_id}/complete`, { lease })).status).toBe(200);
    await expect.poll(isOpen).toBe(false);
  });
});

test("each of many settlements in one request is applied on its own", async () => {
  await enqueueMany("print", pages(4));
  const { jobs } = await claim({ limit: 4 });
  const [a, b, c, d] = jobs.map(({ job_id, lease }) => ({ job_id, lease }));
  await post(`/v1/jobs/${d?.job_id}/complete`, { lease: d?.lease });
  const response = await post("/v1/settlements", {
    settlements: [
      { ...a, outcome: "complete", output: 1 },
      { ...b, outcome: "fail", error: "jam" },
      { ...c, outcome: "release" },
      { ...d, outcome: "complete" },
    ],
  });
  expect(response.status).toBe(200);
  expect(settlementsResponse.parse(await response.json())).toEqual({
    settlements: [
      { job_id: a?.job_id, status: "completed", applied: true, repeated: false },
      { job_id: b?.job_id, status: "pending", applied: true, repeated: false },
      { job_id: c?.job_id, status: "pending", applied: true, repeated: false },
      { job_id: d?.job_id, status: "completed", applied: false, repeated: true },
    ],
  });
});

describe("the circuit breaker of a type that is only pulled", () => {
  type Claimed = Awaited<ReturnType<typeof claimOne>>;
  const state = async () => {
    const { job_types } = jobTypesResponse.parse(await (await call("/v1/admin/job-types")).json());
    return job_types.find(({ type }) => type === "print")?.breaker.state;
  };
  const failAll = async (jobs: readonly Claimed[]) => {
    const settlements = jobs.map(({ job_id, lease }) => ({ job_id, lease, outcome: "fail", error: "jam" }));
    expect((await post("/v1/settlements", { settlements })).status).toBe(200);
  };
  const complete = ({ job_id, lease }: Claimed) => post(`/v1/jobs/${job_id}/complete`, { lease });
  const fail = ({ job_id, lease }: Claimed) => post(`/v1/jobs/${job_id}/fail`, { lease, error: "jam" });
  const passMinute = () =>
    query(`update sluice.breaker
           set opened_at = opened_at - interval '61 s', probed_at = probed_at - interval '61 s'`);

  test("opens when its attempts keep failing, and closes when a probe completes", async () => {
    await enqueueMany("print", pages(40));
    await failAll((await claim({ limit: 20 })).jobs);
    expect(await state()).toBe("open");
    expect((await claim()).jobs).toEqual([]);

    await passMinute();
    expect((await fail(await claimOne({ limit: 10 }))).status).toBe(200);
    expect(await state()).toBe("open");
    expect((await claim()).jobs).toEqual([]);

    await passMinute();
    expect((await complete(await claimOne({ limit: 10 }))).status).toBe(200);
    await expect.poll(state).toBe("closed");
  });

  test("counts failures that are reported one by one", async () => {
    await enqueueMany("print", pages(20));
    const { jobs } = await claim({ limit: 20 });
    for (const job of jobs.slice(1)) await fail(job);
    expect(await state()).toBe("closed");
    for (const job of jobs.slice(0, 1)) await fail(job);
    await expect.poll(state).toBe("open");
  });

  test("opens again when the jobs of the step after a probe fail", async () => {
    await enqueueMany("print", pages(30));
    await failAll((await claim({ limit: 20 })).jobs);
    await passMinute();
    await complete(await claimOne());
    await expect.poll(state).toBe("closed");
    const { jobs } = await claim({ limit: 10 });
    expect(jobs).toHaveLength(4);
    await failAll(jobs);
    expect(await state()).toBe("open");
  });
});
