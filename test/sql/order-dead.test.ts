// A dead job blocks its partition key or lets it pass: the queue's policy says which. Replay, discard, retention and a
// changed policy.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  advanceDeadRuns,
  discard,
  prune,
  replay,
  replayMany,
  settle,
  startDeadRun,
} from "../../src/core/sql/index.ts";
import { runOn } from "../model/gate/gate-sql.ts";
import { differences } from "../support/balance.ts";
import { keyedJobsOf, ofKey } from "../support/keyed-jobs.ts";
import { makeOlder } from "../support/old-jobs.ts";
import { inSession } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { wrongKeys } from "../support/turns.ts";

const db = useTestDatabase();
const jobs = keyedJobsOf(db);
const { verbs } = jobs;
beforeEach(() => emptyQueue(db.pool));
let isPruned = false;
afterEach(async () => {
  expect(await wrongKeys(db.pool)).toEqual([]);
  if (!isPruned) expect(await differences(verbs)).toEqual([]); // the books keep the totals of what is pruned
  isPruned = false;
});

async function pruneAll(): Promise<void> {
  isPruned = true;
  expect(await db.run(prune({ limit: 100 }))).toBeGreaterThan(0);
}

const bury = { kind: "bury", message: "no use" } as const;
const lastRetry = { kind: "retry", message: "busy", retryInSeconds: 0 } as const;
const block = { policy: { onDead: "block" } } as const;
const pass = { policy: { onDead: "pass" } } as const;
const replayOf = async (name: string) => db.run(replay("ann", { id: await jobs.idOf(name) }));
const discardOf = async (name: string) => db.run(discard("ann", { id: await jobs.idOf(name) }));

/** a1 is dead; a2 and a3 wait behind it. */
async function buryFirst(options: typeof block | typeof pass | object): Promise<void> {
  await jobs.put("a1 a2 a3");
  await jobs.take(options);
  await jobs.end("a1", bury);
}

describe("a dead job that blocks", () => {
  test.each([
    ["by default", {}],
    ["if the policy says so", block],
  ])("keeps its key still %s, and other keys go on", async (_, options) => {
    await buryFirst(options);
    await jobs.put("b1 b2");
    expect(await jobs.drain(options)).toBe("b1 b2");
    expect(await jobs.statusOf("a2")).toBe("pending");
    await jobs.put("a4");
    expect(await jobs.take(options)).toBe("");
  });

  test("runs first when it is replayed", async () => {
    await buryFirst(block);
    await jobs.put("a4");
    await replayOf("a1");
    expect(await jobs.take(block)).toBe("a1");
    expect(jobs.held("a1")).toMatchObject({ attempt: 1 });
    expect(await jobs.take(block)).toBe("");
    await jobs.end("a1");
    expect(await jobs.drain(block)).toBe("a2 a3 a4");
  });

  test("runs first when many are replayed", async () => {
    await buryFirst(block);
    await jobs.put("b1 b2");
    await jobs.take(block);
    await jobs.end("b1", bury);
    await db.run(replayMany("ann", { type: "echo", count: 10 }));
    const order = await jobs.drain(block);
    expect([ofKey("a", order), ofKey("b", order)]).toEqual(["a1 a2 a3", "b1 b2"]);
  });

  test("runs first when many are replayed at a rate", async () => {
    await buryFirst(block);
    await jobs.put("b1 b2");
    await jobs.take(block);
    await jobs.end("b1", bury);
    await db.run(startDeadRun("ann", { action: "replay", perMinute: 1 }));
    await db.run(advanceDeadRuns({ seconds: 60 }));
    expect(await jobs.take(block)).toBe("a1");
    await jobs.makeDue();
    expect(await jobs.take(block)).toBe("b1");
    await jobs.end("a1 b1");
    const order = await jobs.drain(block);
    expect([ofKey("a", order), ofKey("b", order)]).toEqual(["a2 a3", "b2"]);
  });

  test("blocks again when it dies again", async () => {
    await buryFirst(block);
    await replayOf("a1");
    await jobs.take(block);
    await jobs.end("a1", bury);
    expect(await jobs.take(block)).toBe("");
    await discardOf("a1");
    expect(await jobs.drain(block)).toBe("a2 a3");
  });

  test("gives the turn on when it is discarded", async () => {
    await buryFirst(block);
    await discardOf("a1");
    expect(await jobs.take(block)).toBe("a2");
    expect(await jobs.take(block)).toBe("");
  });

  test("gives the turn on when retention removes it", async () => {
    await buryFirst(block);
    await makeOlder(verbs, await jobs.idOf("a1"), 31);
    expect(await jobs.take(block)).toBe("");
    await pruneAll();
    expect(await verbs.count("closed")).toBe(0);
    expect(await jobs.drain(block)).toBe("a2 a3");
  });

  test("may have used up its attempts", async () => {
    await jobs.put("a1", { maxAttempts: 1 });
    await jobs.put("a2");
    await jobs.take(block);
    await jobs.end("a1", lastRetry);
    expect(await jobs.statusOf("a1")).toBe("dead");
    expect(await jobs.take(block)).toBe("");
    await discardOf("a1");
    expect(await jobs.take(block)).toBe("a2");
  });

  test("keeps later jobs still that are enqueued when nothing else waits", async () => {
    await jobs.put("a1");
    await jobs.take(block);
    await jobs.end("a1", bury);
    expect(await jobs.take(block)).toBe("");
    await jobs.put("a2");
    expect(await jobs.take(block)).toBe("");
    await replayOf("a1");
    expect(await jobs.drain(block)).toBe("a1 a2");
  });
});

describe("a dead job that lets others pass", () => {
  test("gives the turn on at once", async () => {
    await buryFirst(pass);
    expect(await jobs.take(pass)).toBe("a2");
  });

  test("is replayed as a new job, behind all that wait", async () => {
    await buryFirst(pass);
    await jobs.take(pass);
    await replayOf("a1");
    expect(await jobs.take(pass)).toBe("");
    await jobs.put("a4");
    await jobs.end("a2");
    expect(await jobs.drain(pass)).toBe("a3 a1 a4");
  });

  test("changes nothing for its key when it is discarded or removed", async () => {
    await buryFirst(pass);
    await jobs.take(pass);
    await discardOf("a1");
    expect(await jobs.take(pass)).toBe("");
    await makeOlder(verbs, await jobs.idOf("a1"), 31);
    await pruneAll();
    expect(await jobs.take(pass)).toBe("");
    await jobs.end("a2");
    expect(await jobs.take(pass)).toBe("a3");
  });
});

describe("a policy that changes", () => {
  test("from block to pass frees the keys that are blocked, and they stay free", async () => {
    await buryFirst(block);
    await jobs.put("b1 b2");
    await jobs.take(block);
    await jobs.end("b1", bury);
    expect(await jobs.take(block)).toBe("");
    const taken = await jobs.take(pass);
    expect([ofKey("a", taken), ofKey("b", taken)]).toEqual(["a2", "b2"]);
    await jobs.end("a2 b2");
    expect(await jobs.drain(block)).toBe("a3");
    await replayOf("a1");
    expect(await jobs.drain(block)).toBe("a1");
  });

  test.each(["replay", "discard"])(
    "from block to pass frees a key also if a %s of its dead job was open at that moment and is rolled back",
    async (verb) => {
      await buryFirst(block);
      await inSession(db.pool, async (client) => {
        await client.query("begin");
        await client.query(`select sluice.${verb}('ann', $1)`, [await jobs.idOf("a1")]);
        expect(await jobs.take(pass)).toBe("");
        await client.query("rollback");
      });
      expect(await jobs.drain(pass)).toBe("a2 a3");
    },
  );

  test("from block to pass frees a key also if its job died in a transaction that was open at that moment", async () => {
    await jobs.put("a1 a2");
    await jobs.take(block);
    await inSession(db.pool, async (client) => {
      await client.query("begin");
      await runOn(client, settle([{ job: jobs.held("a1"), outcome: bury }]));
      expect(await jobs.take(pass)).toBe("");
      await client.query("commit");
    });
    expect(await jobs.drain(pass)).toBe("a2");
  });

  test("from pass to block blocks for the next dead job, not for one that was passed", async () => {
    await buryFirst(pass);
    expect(await jobs.take(block)).toBe("a2");
    await jobs.end("a2", bury);
    expect(await jobs.take(block)).toBe("");
    await discardOf("a2");
    expect(await jobs.take(block)).toBe("a3");
  });
});
