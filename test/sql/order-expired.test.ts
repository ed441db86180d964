// A job with a partition key expires: the reaper buries it, or the claim that meets it. It blocks its key or lets it pass, as
// any other dead job.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { discard, reapExpired, reapLeases, replay } from "../../src/core/sql/index.ts";
import { differences } from "../support/balance.ts";
import { keyedJobsOf, ofKey } from "../support/keyed-jobs.ts";
import { makeOlder } from "../support/old-jobs.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { wrongKeys } from "../support/turns.ts";

const db = useTestDatabase();
const jobs = keyedJobsOf(db);
const { verbs } = jobs;
const policies = { pass: { policy: { onDead: "pass" } }, block: { policy: { onDead: "block" } } } as const;
type Policy = keyof typeof policies;

beforeEach(() => emptyQueue(db.pool));
afterEach(async () => {
  expect(await wrongKeys(db.pool)).toEqual([]);
  expect(await differences(verbs)).toEqual([]);
});

/** Only claims write a policy, so one claim comes before the jobs. */
async function setPolicy(policy: Policy): Promise<void> {
  await jobs.put("z1", { type: "other" });
  expect(await jobs.take({ ...policies[policy], types: ["other"] })).toBe("z1");
  await jobs.end("z1");
}

const putShort = (name: string) => jobs.put(name, { expiresAt: new Date(Date.now() + 60_000) });

/** What putShort enqueued expires now. */
async function expire({ byReaper }: { byReaper: boolean }): Promise<void> {
  await verbs.query("update sluice.job set expires_at = now() where expires_at is not null");
  await verbs.query("update sluice.expiry set expires_at = now()");
  if (byReaper) await db.run(reapExpired({ limit: 10 }));
}

describe.each([
  ["pass", true],
  ["pass", false],
  ["block", true],
  ["block", false],
] as const)(
  "where dead jobs %s, and an expired one is found by the reaper (%j) or a claim,",
  (policy, byReaper) => {
    const options = policies[policy];
    const blocks = policy === "block";

    /** The expired job is dead. What comes after it runs, or waits until it is discarded. */
    async function expectDeadBefore(expired: string, rest: string): Promise<void> {
      expect(await jobs.drain(options)).toBe(blocks ? "" : rest);
      if (byReaper) await db.run(reapExpired({ limit: 10 })); // a job that blocks may be left until its turn
      expect(await jobs.statusOf(expired)).toBe("dead");
      expect(await verbs.find(await jobs.idOf(expired))).toMatchObject({ deadReason: "expired" });
      expect(await wrongKeys(db.pool)).toEqual([]);
      if (!blocks) return;
      await db.run(discard("ann", { id: await jobs.idOf(expired) }));
      expect(await jobs.drain(options)).toBe(rest);
    }

    test("the first of a key decides before any was claimed", async () => {
      await setPolicy(policy);
      await putShort("a1");
      await jobs.put("a2 a3");
      await expire({ byReaper });
      await expectDeadBefore("a1", "a2 a3");
    });

    test("one that waits behind another decides when its turn comes", async () => {
      await jobs.put("a1");
      await putShort("a2");
      await jobs.put("a3 a4");
      expect(await jobs.take(options)).toBe("a1");
      await expire({ byReaper });
      expect(await jobs.take(options)).toBe("");
      await jobs.end("a1");
      await expectDeadBefore("a2", "a3 a4");
    });

    test.each([
      ["is ready", { kind: "release" }],
      ["waits for a retry", { kind: "retry", message: "busy", retryInSeconds: 60 }],
    ] as const)("one that %s at its turn decides at once", async (_, outcome) => {
      await putShort("a1");
      await jobs.put("a2 a3");
      await jobs.take(options);
      await jobs.end("a1", outcome);
      await expire({ byReaper });
      await jobs.makeDue();
      await expectDeadBefore("a1", "a2 a3");
    });

    test("one that was abandoned at its turn decides at once", async () => {
      await putShort("a1");
      await jobs.put("a2 a3");
      await jobs.take({ ...options, leaseSeconds: -1 });
      await db.run(reapLeases({ limit: 10 }));
      await expire({ byReaper });
      await jobs.makeDue();
      await expectDeadBefore("a1", "a2 a3");
    });

    test("one in the middle of a run is not passed over", async () => {
      await setPolicy(policy);
      await jobs.put("a1");
      await putShort("a2");
      await jobs.put("a3 a4");
      await expire({ byReaper });
      const taken = await jobs.take({ ...options, run: 5 });
      expect(blocks ? ["a1"] : ["a1", "a1 a3 a4"]).toContain(taken);
      await jobs.end(taken);
      await expectDeadBefore("a2", taken === "a1" ? "a3 a4" : "");
    });

    test("one in the middle of a run waits for its turn also when the claim takes other jobs beside the run", async () => {
      await setPolicy(policy);
      await jobs.put("b1", { partitionKey: null, priority: 1 });
      await jobs.put("a1");
      await putShort("a2");
      await jobs.put("a3");
      await expire({ byReaper });
      const taken = ofKey("a", await jobs.take({ ...options, run: 2 }));
      expect(blocks ? ["a1"] : ["a1", "a1 a3"]).toContain(taken);
      expect(await wrongKeys(db.pool)).toEqual([]);
      await jobs.end(taken);
      await expectDeadBefore("a2", taken === "a1" ? "a3" : "");
    });

    test("two that follow each other decide one after the other", async () => {
      await setPolicy(policy);
      await putShort("a1");
      await putShort("a2");
      await jobs.put("a3");
      await expire({ byReaper });
      expect(await jobs.drain(options)).toBe(blocks ? "" : "a3");
      if (!blocks) return;
      await db.run(discard("ann", { id: await jobs.idOf("a1") }));
      await expectDeadBefore("a2", "a3");
    });

    test("one may finish while it runs, and the next follows", async () => {
      await putShort("a1");
      await jobs.put("a2");
      await jobs.take(options);
      await expire({ byReaper });
      expect(await jobs.end("a1")).toBe("a1");
      expect(await jobs.take(options)).toBe("a2");
    });

    test("one that is delayed takes no turn", async () => {
      await jobs.put("a1", { delaySeconds: 30, expiresAt: new Date(Date.now() + 60_000) });
      await jobs.put("a2");
      await expire({ byReaper });
      if (!byReaper) await jobs.makeDue();
      expect(await jobs.take(options)).toBe("a2");
      await jobs.end("a2");
      expect(await jobs.take(options)).toBe("");
      expect(await jobs.statusOf("a1")).toBe("dead");
    });

    test("one that was replayed runs, in its old place if it blocked", async () => {
      await jobs.put("a1");
      await putShort("a2");
      await jobs.put("a3");
      await jobs.take(options);
      await expire({ byReaper });
      await jobs.end("a1");
      expect(await jobs.drain(options)).toBe(blocks ? "" : "a3");
      if (byReaper) await db.run(reapExpired({ limit: 10 }));
      await db.run(replay("ann", { id: await jobs.idOf("a2") }));
      expect(await jobs.drain(options)).toBe(blocks ? "a2 a3" : "a2");
    });
  },
);

test("expired jobs that wait for a turn to block their key do not keep the reaper from others", async () => {
  await setPolicy("block");
  await jobs.put("a1 a2 a3 a4 a5");
  await jobs.take(policies.block);
  await jobs.end("a1", { kind: "bury", message: "no use" });
  for (const name of ["a2", "a3", "a4", "a5"]) await makeOlder(verbs, await jobs.idOf(name), 40);
  const plain = await makeOlder(verbs, await verbs.enqueueOne(), 35);
  for (let round = 0; round < 3; round++) await db.run(reapExpired({ limit: 2 }));
  expect((await verbs.find(plain)).status).toBe("dead");
});
