// Cancel and order: a cancelled job gives its turn on. While a cancel is open, nothing behind the job runs: the cancel may
// still be rolled back.
import type pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { advanceCursors, cancel, checkReach } from "../../src/core/sql/index.ts";
import { differences } from "../support/balance.ts";
import { keyedJobsOf, ofKey } from "../support/keyed-jobs.ts";
import { inSession } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { wrongKeys } from "../support/turns.ts";

const db = useTestDatabase();
const jobs = keyedJobsOf(db);
const { verbs } = jobs;
beforeEach(() => emptyQueue(db.pool));
afterEach(async () => {
  expect(await wrongKeys(db.pool)).toEqual([]);
  expect(await differences(verbs)).toEqual([]);
});

const cancelOf = async (name: string) => verbs.isApplied(cancel(await jobs.idOf(name)));
let others = 0;
const retry = { kind: "retry", message: "busy", retryInSeconds: 60 } as const;

describe("a cancelled job gives its turn on", () => {
  test("before its key was ever claimed", async () => {
    await jobs.put("a1 a2 a3");
    expect(await cancelOf("a1")).toBe(true);
    expect(await jobs.drain()).toBe("a2 a3");
  });

  test("while it waits behind another, read or not", async () => {
    await jobs.put("a1 a2 a3");
    await jobs.take();
    expect(await cancelOf("a2")).toBe(true);
    await jobs.put("a4 a5");
    expect(await cancelOf("a4")).toBe(true);
    await jobs.end("a1");
    expect(await jobs.drain()).toBe("a3 a5");
  });

  test.each([
    ["is ready at its turn", { kind: "release" }],
    ["waits for a retry", retry],
  ] as const)("while it %s", async (_, outcome) => {
    await jobs.put("a1 a2");
    await jobs.take();
    await jobs.end("a1", outcome);
    expect(await cancelOf("a1")).toBe(true);
    expect(await jobs.take()).toBe("a2");
    expect(await jobs.take()).toBe("");
  });

  test("while it is delayed, without touching the turn of another", async () => {
    await jobs.put("a1", { delaySeconds: 60 });
    await jobs.put("a2 a3");
    await jobs.take();
    expect(await cancelOf("a1")).toBe(true);
    expect(await jobs.take()).toBe("");
    await jobs.end("a2");
    expect(await jobs.take()).toBe("a3");
  });

  test("when it is the last of its key, and the key works again later", async () => {
    await jobs.put("a1");
    await jobs.take();
    await jobs.end("a1", retry);
    expect(await cancelOf("a1")).toBe(true);
    expect(await jobs.take()).toBe("");
    await jobs.put("a2");
    expect(await jobs.drain()).toBe("a2");
  });

  test("not while it runs", async () => {
    await jobs.put("a1 a2");
    await jobs.take();
    expect(await cancelOf("a1")).toBe(false);
    expect(await jobs.take()).toBe("");
  });
});

describe.each(["commit", "rollback"] as const)(
  "a cancel that is open for a while and ends with a %s",
  (end) => {
    /** Runs `meanwhile` while the cancel of a job is open. */
    async function holdCancel(name: string, meanwhile: () => Promise<void>): Promise<void> {
      const id = await jobs.idOf(name);
      await inSession(db.pool, async (client: pg.PoolClient) => {
        await client.query("begin");
        await client.query("select sluice.cancel($1)", [id]);
        await meanwhile();
        await client.query(end);
      });
    }

    const expectOrder = async (all: string, cancelled: string, options = {}) => {
      const left = all.split(" ").filter((name) => end === "rollback" || name !== cancelled);
      await db.run(advanceCursors()); // it finds what was committed behind the cursors
      expect(ofKey("a", await jobs.drain(options))).toBe(left.join(" "));
    };

    /** Claims, and everything else that moves cursors. */
    async function moveOn(options = {}): Promise<void> {
      for (let round = 0; round < 3; round++) {
        await jobs.put(`b${++others}`);
        const taken = await jobs.take(options);
        expect(ofKey("a", taken)).toBe("");
        if (taken !== "") await jobs.end(taken);
        await db.run(advanceCursors());
        await db.run(checkReach());
      }
    }

    describe.each([1, 5])("with runs of up to %i", (run) => {
      test("keeps all behind the first job of a key that was never claimed", async () => {
        await jobs.put("a1 a2 a3");
        await holdCancel("a1", () => moveOn({ run }));
        await jobs.put("a4");
        await expectOrder("a1 a2 a3 a4", "a1", { run });
      });

      test("keeps all behind the first job of a key that was worked before", async () => {
        await jobs.put("a0");
        await jobs.drain({ run });
        await jobs.put("a1 a2 a3");
        await holdCancel("a1", () => moveOn({ run }));
        await expectOrder("a1 a2 a3", "a1", { run });
      });

      test("keeps all behind a job that was read while another ran", async () => {
        await jobs.put("a0 a1 a2 a3");
        expect(await jobs.take({ run: 1 })).toBe("a0");
        await holdCancel("a1", async () => {
          await moveOn({ run });
          await jobs.end("a0");
          await moveOn({ run });
        });
        await expectOrder("a1 a2 a3", "a1", { run });
      });

      test("keeps all behind a job that was enqueued while another ran and was not read", async () => {
        await jobs.put("a0");
        expect(await jobs.take({ run: 1 })).toBe("a0");
        await jobs.put("a1 a2 a3");
        await holdCancel("a1", async () => {
          await jobs.end("a0");
          await moveOn({ run });
        });
        await expectOrder("a1 a2 a3", "a1", { run });
      });

      test("keeps all behind a job in the middle", async () => {
        await jobs.put("a1 a2 a3");
        await holdCancel("a2", async () => {
          expect(await jobs.take({ run })).toBe("a1");
          await moveOn({ run });
          await jobs.end("a1");
          await moveOn({ run });
        });
        await expectOrder("a2 a3", "a2", { run });
      });

      test.each([
        ["is ready at its turn", { kind: "release" }],
        ["waits for a retry", retry],
      ] as const)("keeps all behind a job that %s", async (_, outcome) => {
        await jobs.put("a1 a2 a3");
        await jobs.take({ run: 1 });
        await jobs.end("a1", outcome);
        await holdCancel("a1", () => moveOn({ run }));
        await jobs.makeDue();
        await expectOrder("a1 a2 a3", "a1", { run });
      });
    });
  },
);

test("a turn that comes back while its row is locked is not lost", async () => {
  await jobs.put("a1 a2 b1");
  await jobs.take();
  await jobs.end("a1 b1");
  await inSession(db.pool, async (client) => {
    await client.query("begin");
    const { rowCount } = await client.query("select from sluice.ready where returned is not null for update");
    expect(rowCount).toBeGreaterThan(0);
    await jobs.put("c1 b2");
    await jobs.take();
    await db.run(advanceCursors());
    await client.query("commit");
  });
  await jobs.put("d1");
  await jobs.drain();
  for (const name of ["a2", "b2"]) expect(["processing", "completed"]).toContain(await jobs.statusOf(name));
});
