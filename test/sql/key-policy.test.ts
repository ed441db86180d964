// The policies of a queue's keys that deployments bring along: the newest one counts, and two versions do not take turns.
import { beforeEach, expect, test } from "vitest";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { only, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const verbs = verbsOf(db);
beforeEach(async () => {
  await emptyQueue(db.pool);
  await verbs.enqueue({ fairKey: "a" }); // the dispatcher works for queues with keys
});

/** A claim of a deployment. The cap of 1 keeps the job where it is from the second claim on. */
const claimOf = (concurrency: number, { isDeployed = true } = {}) =>
  verbs.claim({ policy: { concurrency }, isDeployed, limit: 1 });
const stored = async () =>
  only(await verbs.query<{ concurrency: number }>("select concurrency from sluice.key_policy")).concurrency;
const pass = (interval: string) =>
  verbs.query(
    `update sluice.key_policy_version
     set first_seen_at = first_seen_at - $1::interval, seen_at = seen_at - $1::interval`,
    [interval],
  );

test("while two versions run, the policy that came last counts, whoever claims", async () => {
  await claimOf(1);
  await claimOf(2);
  for (let minutes = 0; minutes < 40; minutes += 5) {
    for (const concurrency of [1, 2, 1]) {
      await claimOf(concurrency);
      expect(await stored()).toBe(2);
    }
    await pass("5 minutes");
  }
});

test("after a rollback the older policy counts again, when the newer one was not seen for 15 minutes", async () => {
  await claimOf(1);
  await claimOf(2);
  await pass("10 minutes");
  await claimOf(1);
  expect(await stored()).toBe(2);
  await pass("6 minutes");
  await claimOf(1);
  expect(await stored()).toBe(1);
});

test("a claim that names no deployment changes the policy at once", async () => {
  await claimOf(1);
  await claimOf(2);
  await claimOf(1, { isDeployed: false });
  expect(await stored()).toBe(1);
});

test("the claims of one version write nothing about it for minutes", async () => {
  const row = () =>
    verbs.query("select xmin::text, ctid::text, seen_at::text from sluice.key_policy_version");
  await claimOf(3);
  const first = await row();
  await claimOf(3);
  await pass("1 minute");
  const later = await row();
  await claimOf(3);
  expect(await row()).toEqual(later);
  expect(first).toHaveLength(1);
});
