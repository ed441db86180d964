// How a puller keeps the leases of its jobs, and what it does when it loses one. The puller believes in leases of a few
// seconds; the server makes them longer, because it allows no less than 60 s. SQL moves their deadlines.
import { expect, test } from "vitest";
import { LeaseLostError } from "../../src/puller/puller.ts";
import { heldHandlers } from "../support/held-handlers.ts";
import { usePullerDeployment } from "../support/puller-deployment.ts";

const deployment = usePullerDeployment();
const { db, enqueue, fire, look, pull, statusesOf } = deployment;
const relay = () => deployment.relay();
const patience = { timeout: 20_000, interval: 20 };
const numbers = (count: number) => Array.from({ length: count }, (_, n) => ({ n }));
const reapCron = "*/2 * * * *";

const shortLeases = (seconds: number) => ({
  leaseSeconds: seconds,
  waitSeconds: 0,
  fetch: (url: string, init: RequestInit) =>
    fetch(url, {
      ...init,
      ...(init.body && {
        body: String(init.body).replace(`"lease_seconds":${seconds}`, '"lease_seconds":60'),
      }),
    }),
});

test("the lease of a handler that takes longer than its lease is extended until it ends", async () => {
  const ids = await enqueue("work", numbers(3));
  const { handlers, jobs, endAll } = heldHandlers();
  const { errors } = pull({ ...shortLeases(6), handlers });
  await expect.poll(() => jobs.length, patience).toBe(3);
  // Twice the lease is almost over, and twice it is extended.
  for (let n = 0; n < 2; n++) {
    await db.pool.query("update sluice.lease set deadline = now() + interval '15 s'");
    const secondsLeft = async () => {
      const text = "select extract(epoch from min(deadline) - now())::float8 as left from sluice.lease";
      return (await db.pool.query(text)).rows[0].left;
    };
    await expect.poll(secondsLeft, patience).toBeGreaterThan(50);
    await fire(reapCron);
  }
  const extensions = relay().to("/v1/extensions");
  expect(new Set(extensions.map(({ body }) => body.extensions.length))).toEqual(new Set([3]));
  expect((await db.pool.query("select from sluice.lease")).rowCount).toBe(1); // it was not split
  endAll();
  await expect.poll(() => statusesOf(ids), patience).toEqual(new Set(["completed"]));
  expect((await look(ids[0] ?? "")).attempts).toBe(1);
  expect(errors).toEqual([]);
});

test("a handler whose lease is lost has its signal aborted, and does not settle the job", async () => {
  const [id = ""] = await enqueue("work", [{}]);
  const { handlers, jobs, endAll } = heldHandlers();
  const { errors } = pull({ ...shortLeases(6), handlers });
  await expect.poll(() => jobs.length, patience).toBe(1);
  await db.pool.query("update sluice.lease set deadline = now() - interval '1 s'");
  await fire(reapCron);
  await expect.poll(() => jobs[0]?.signal.aborted, patience).toBe(true);
  expect(jobs[0]?.signal.reason).toBeInstanceOf(LeaseLostError);
  endAll();
  expect(errors).toMatchObject([{ error: { name: "LeaseLostError" }, job: { jobId: id, attempt: 1 } }]);
  expect(await look(id)).toMatchObject({ status: "pending", attempts: 1, error: "the lease ran out" });
  expect(relay().to("/v1/settlements")).toEqual([]);
});

test("a handler whose lease cannot be extended in time has its signal aborted", async () => {
  await enqueue("work", [{}]);
  const { handlers, jobs } = heldHandlers();
  pull({ ...shortLeases(1.5), handlers });
  await expect.poll(() => jobs.length, patience).toBe(1);
  await relay().turnOff();
  await expect.poll(() => jobs[0]?.signal.aborted, patience).toBe(true);
  expect(jobs[0]?.signal.reason).toMatchObject({ message: "the lease could not be extended in time" });
  await relay().turnOn();
});

test("a job that was settled although its lease was lost is reported", async () => {
  const [id = ""] = await enqueue("work", [{}]);
  const { handlers, jobs, endAll } = heldHandlers();
  const { errors } = pull({ leaseSeconds: 60, handlers });
  await expect.poll(() => jobs.length, patience).toBe(1);
  await db.pool.query("update sluice.lease set deadline = now() - interval '1 s'");
  await fire(reapCron);
  endAll();
  const aboutJobs = () => errors.filter(({ job }) => job);
  await expect
    .poll(aboutJobs, patience)
    .toMatchObject([{ error: { name: "LeaseLostError" }, job: { jobId: id } }]);
  expect(await look(id)).toMatchObject({ status: "pending" });
});
