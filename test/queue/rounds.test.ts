// Rounds: the drain round starts the right number of drains, and every round is recorded.
import { beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { claim, openBreaker, pause, resume } from "../../src/core/sql/index.ts";
import { defineJob, definePulledJob } from "../../src/jobs/define.ts";
import { enqueue } from "../../src/queue/enqueue.ts";
import { reap } from "../../src/queue/reap.ts";
import { drainAndRecord, runAndRecord, runDrainRound } from "../../src/queue/rounds.ts";
import { newJob } from "../support/jobs.ts";
import { createTestPorts, lookAt, roomyBudget } from "../support/ports.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const gates: (() => void)[] = [];
const ports = createTestPorts(db, [
  defineJob("echo", { payload: z.object({}), run: () => {} }),
  definePulledJob("remote", { payload: z.object({}) }),
  defineJob("heavy", {
    payload: z.object({}),
    queue: "heavy",
    run: () => new Promise<void>((open) => gates.push(open)),
  }),
]);
const options = { plan: "paid", fanOut: { jobsPerDrain: 10, maxDrains: 3 } } as const;
const rounds = async () =>
  (await db.pool.query("select kind, queue, claimed, completed, reason from sluice.round order by queue, id"))
    .rows;

beforeEach(async () => {
  await emptyQueue(db.pool);
  ports.events.length = 0;
  gates.length = 0;
});

describe("a drain round", () => {
  test("starts drains for each queue by its backlog, up to the limit", async () => {
    for (const [name, count] of Object.entries({ small: 3, middle: 15, large: 200 })) {
      await Promise.all(Array.from({ length: count }, () => enqueue(ports, newJob({ queue: name }))));
    }
    await enqueue(ports, newJob({ queue: "later", delaySeconds: 600 }));
    const started: string[] = [];
    const drainElsewhere = async (name: string) => {
      started.push(name);
      return {
        queue: name,
        claimed: 0,
        completed: 0,
        failed: 0,
        released: 0,
        lost: 0,
        claimMs: null,
        madeJobs: false,
        end: "empty",
      } as const;
    };
    await runDrainRound(ports, { ...options, drainElsewhere });
    expect(started.sort()).toEqual(["large", "large", "large", "middle", "middle", "small"]);
  });

  test("starts no drain for jobs that no drain may claim", async () => {
    await enqueue(ports, newJob({ type: "unknown", queue: "unknown" }));
    await enqueue(ports, newJob({ type: "remote", queue: "remote" }));
    await enqueue(ports, newJob({ queue: "still" }));
    await db.run(pause("ann", { queue: "still" }));
    await enqueue(ports, newJob({ type: "heavy", queue: "broken" }));
    await db.run(openBreaker("heavy"));
    expect(await runDrainRound(ports, options)).toEqual({ drains: 0 });
    await db.run(resume("ann", { queue: "still" }));
    expect(await runDrainRound(ports, options)).toEqual({ drains: 1 });
  });

  test("drains a light queue while a heavy one is stuck", async () => {
    await Promise.all(
      Array.from({ length: 5 }, () => enqueue(ports, newJob({ type: "heavy", queue: "heavy" }))),
    );
    const light = await enqueue(ports, newJob());
    const round = runDrainRound(ports, options);
    await expect.poll(async () => (await lookAt(db, light.id)).status).toBe("completed");
    await expect.poll(() => gates).toHaveLength(5);
    for (const open of gates) open();
    await round;
    expect(await rounds()).toEqual([
      { kind: "drain", queue: "default", claimed: 1, completed: 1, reason: "empty" },
      { kind: "drain", queue: "heavy", claimed: 5, completed: 5, reason: "empty" },
    ]);
  });

  test("records how long its claims took, if it made any", async () => {
    await runDrainRound(ports, options);
    await enqueue(ports, newJob());
    await runDrainRound(ports, options);
    const { rows } = await db.pool.query(
      "select claim_ms between 0 and 60000 as is_plausible from sluice.round order by id",
    );
    expect(rows).toEqual([{ is_plausible: null }, { is_plausible: true }]);
  });

  test("is recorded even with nothing to do, to show that the cron runs", async () => {
    await runDrainRound(ports, options);
    expect(await rounds()).toMatchObject([{ kind: "drain", queue: null, claimed: 0, reason: "empty" }]);
  });

  test("fails when a drain could not be started", async () => {
    await enqueue(ports, newJob());
    const drainElsewhere = () => Promise.reject(new Error("no invocation"));
    await expect(runDrainRound(ports, { ...options, drainElsewhere })).rejects.toThrow(
      "1 of 1 drains failed",
    );
  });
});

describe("a drain that leaves jobs because of a rate", () => {
  const woken: number[] = [];
  const rated = defineJob("rated", { payload: z.object({}), rate: { limit: 3, per: 60 }, run: () => {} });
  const ratedPorts = { ...createTestPorts(db, [rated]), wakeIn: (ms: number) => void woken.push(ms) };
  const drainOnce = (kind: "drain" | "nudge") =>
    drainAndRecord(ratedPorts, { kind, queue: "default", budget: roomyBudget });

  test("says when the next one may start, and so does one that finds none that may", async () => {
    for (let n = 0; n < 5; n++) await enqueue(ratedPorts, newJob({ type: "rated" }));
    for (const kind of ["drain", "drain", "nudge"] as const) {
      woken.length = 0;
      await drainOnce(kind);
      expect(woken).toEqual([expect.closeTo(60_000, -4)]);
    }
    expect((await rounds()).map(({ claimed }) => claimed)).toEqual([3, 0]);
  });

  test("says nothing if none is left", async () => {
    for (let n = 0; n < 3; n++) await enqueue(ratedPorts, newJob({ type: "rated" }));
    woken.length = 0;
    await drainOnce("drain");
    expect(woken).toEqual([]);
  });
});

describe("the other rounds", () => {
  test("a reap round makes the jobs of a dead drain pending again, and is recorded", async () => {
    await enqueue(ports, newJob());
    await db.run(claim({ queue: "default", types: [{ type: "echo" }], limit: 1, leaseSeconds: 0 }));
    expect(await runAndRecord(ports, { kind: "reap" }, () => reap(ports))).toMatchObject({
      steps: { leases: { did: [{ returned: 1, buried: 0 }] } },
    });
    expect(await reap(ports)).toMatchObject({ steps: { leases: { did: [{ returned: 0, buried: 0 }] } } });
    expect(await rounds()).toMatchObject([{ kind: "reap", reason: "done" }]);
  });

  test("a round that fails is recorded as failed", async () => {
    await expect(
      runAndRecord(ports, { kind: "watch" }, () => Promise.reject(new Error("no"))),
    ).rejects.toThrow("no");
    expect(await rounds()).toMatchObject([{ kind: "watch", reason: "error" }]);
  });
});
