// A deployment without crons on a real Postgres, in simulated time: the clock's own policy, its looks, drains and visits, with
// statements whose reply is lost and calls of the clock that are lost. Time passes by moving everything in the database back.
import type pg from "pg";
import * as z from "zod";
import {
  clockTimes,
  endLook,
  failLook,
  newClock,
  nextLookMs,
  startLook,
  tellClock,
} from "../../src/core/policy/clock.ts";
import type { Statement } from "../../src/core/sql/statement.ts";
import { defineJob } from "../../src/jobs/define.ts";
import type { Ports } from "../../src/queue/ports.ts";
import { drainAndRecord } from "../../src/queue/rounds.ts";
import { wake } from "../../src/queue/wake.ts";
import { DatabaseFault } from "../support/faulty-database.ts";
import { createTestPorts, roomyBudget } from "../support/ports.ts";
import type { TestDatabase } from "../support/test-database.ts";

export interface Started {
  id: string;
  attempt: number;
  atMs: number;
}

export interface ClockWorld {
  ports: Ports;
  nowMs(): number;
  started: Started[];
  /** How many replies and calls of the clock were lost. */
  lost(): number;
  /** Somebody is about to enqueue. This call is not lost: without it no job is acknowledged. */
  holdAwake(): void;
  /** Fires the clock's alarms up to that time. */
  passUntil(endMs: number): Promise<void>;
}

const retrySeconds = 7;
const fanOut = { jobsPerDrain: 10, maxDrains: 2 };

/** `isLost` is asked for each statement and each call of the clock. */
export function createClockWorld(db: TestDatabase, isLost: () => boolean): ClockWorld {
  let aheadMs = 0;
  let state = newClock;
  let lost = 0;
  const started: Started[] = [];
  const nowMs = () => Date.now() + aheadMs;
  const loses = () => {
    const answer = isLost();
    if (answer) lost++;
    return answer;
  };

  const run = async <T>(statement: Statement<T>): Promise<T> => {
    const answer = await db.run(statement);
    if (loses()) throw new DatabaseFault(`the reply to ${statement.name} was lost`);
    return answer;
  };
  const work = defineJob("work", {
    payload: z.object({ fails: z.number().default(0) }),
    backoff: { baseSeconds: retrySeconds, maxSeconds: retrySeconds, jitterSeconds: 0 },
    timeoutSeconds: 20,
    maxAttempts: 20,
    run: ({ fails }, { jobId: id, attempt }) => {
      started.push({ id, attempt, atMs: nowMs() });
      if (attempt <= fails) throw new Error("not yet");
    },
  });
  const base = createTestPorts({ run }, [work]);
  const ports: Ports = {
    ...base,
    clock: { ...base.clock, nowMs },
    wakeIn: (dueMs) => {
      if (!loses()) state = tellClock(state, { nowMs: nowMs(), dueMs, isWork: false });
    },
  };

  async function fireAlarm(): Promise<void> {
    const startedMs = nowMs();
    const looking = startLook(state, startedMs);
    if (!looking) return;
    state = looking;
    const upkeep = looking.isVisiting;
    try {
      const options = {
        plan: "paid",
        fanOut,
        upkeep,
        notices: { targets: [], sender: ports.sender, batch: 1 },
      } as const;
      const { queues, dueMs, upkeepMs } = await wake(ports, options);
      const found = { startedMs, nowMs: nowMs(), hasWork: queues.length > 0, dueMs };
      state = endLook(state, { ...found, upkeepMs: upkeep ? upkeepMs : undefined });
      for (const queue of queues) await drain(queue);
    } catch {
      state = failLook(state, nowMs());
    }
  }

  /** As edge/clock/sluice-clock.ts does it. */
  async function drain(queue: string): Promise<void> {
    try {
      await drainAndRecord(ports, { kind: "drain", queue, budget: roomyBudget });
    } catch {
      state = tellClock(state, { nowMs: nowMs(), dueMs: 5000, isWork: false });
    }
  }

  return {
    ports,
    nowMs,
    started,
    lost: () => lost,
    holdAwake: () => {
      state = tellClock(state, { nowMs: nowMs(), dueMs: null, isWork: true });
    },
    async passUntil(endMs) {
      for (;;) {
        const atMs = nextLookMs(state) ?? Number.POSITIVE_INFINITY;
        const waitMs = Math.min(atMs, endMs) - nowMs();
        if (waitMs > 0) {
          aheadMs += waitMs;
          await moveBack(db.pool, waitMs);
        }
        if (atMs > endMs) return;
        await fireAlarm();
      }
    },
  };
}

/** No job waits longer than this after a lost reply or a lost call: a lease, the visit that follows, and the wait for the retry. */
export const lateAfterLossMs =
  120_000 + clockTimes.awakeMs + clockTimes.graceMs + clockTimes.maxBackoffMs + retrySeconds * 1000 + 45_000;

async function moveBack(pool: pg.Pool, ms: number): Promise<void> {
  const passed = `interval '${ms} milliseconds'`;
  await pool.query(`
    update sluice.scheduled set run_at = run_at - ${passed};
    update sluice.lease set deadline = deadline - ${passed};
    update sluice.expiry set expires_at = expires_at - ${passed};
    update sluice.job set expires_at = expires_at - ${passed} where expires_at is not null;
    update sluice.job set scheduled_at = scheduled_at - ${passed} where scheduled_at is not null;
    update sluice.debounce_state set since = since - ${passed}, until = until - ${passed};
    update sluice.idempotency set expires_at = expires_at - ${passed};
    delete from sluice.cursors`);
}
