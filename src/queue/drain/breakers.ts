// The circuit breakers as one drain sees them: after failures it asks how the type fared everywhere of late and opens
// the breaker if that was bad; after a probe that succeeded it closes it. The database keeps the state and enforces it.
import type { Outcome } from "../../core/job.ts";
import {
  type Attempts,
  type BreakerPolicy,
  defaultBreaker,
  shouldOpen,
  trialBreaker,
} from "../../core/policy/circuit-breaker.ts";
import { closeBreaker, openBreaker, recentAttempts } from "../../core/sql/index.ts";
import type { Ports } from "../ports.ts";
import type { Landing } from "./running-jobs.ts";

/** A type that fails fast is looked at this often, not after each batch. */
const judgeEveryMs = 1000;

export interface Breakers {
  /** Returns how many statements it took; none as long as nothing fails. */
  judge(settled: readonly Landing[]): Promise<number>;
}

export function createBreakers(ports: Ports): Breakers {
  const judgedMs = new Map<string, number>();

  const isDue = (type: string) =>
    ports.clock.nowMs() - (judgedMs.get(type) ?? Number.NEGATIVE_INFINITY) >= judgeEveryMs;

  return {
    async judge(settled) {
      const closing = typesOf(
        settled.filter(({ job, outcome }) => job.isProbe && outcome.kind === "complete"),
      );
      // A probe that failed says only that the breaker stays open.
      const failed = settled.filter(({ job, outcome }) => isFailure(outcome) && !job.isProbe);
      const onTrial = new Set(typesOf(failed.filter(({ job }) => job.isTrial)));
      let statements = 0;
      try {
        for (const type of closing) statements += await close(ports, type);
        for (const type of typesOf(failed).filter((type) => onTrial.has(type) || isDue(type))) {
          judgedMs.set(type, ports.clock.nowMs());
          const policy = onTrial.has(type) ? trialBreaker : defaultBreaker;
          statements += await openIfFailing(ports, type, policy);
        }
      } catch (error) {
        // The next failure or probe asks again.
        ports.log.warn("breaker not judged", { message: (error as Error).message });
      }
      return statements;
    },
  };
}

async function close(ports: Ports, type: string): Promise<number> {
  if ((await ports.db.run(closeBreaker(type)))[0]) ports.log.warn("breaker closed", { type });
  return 1;
}

async function openIfFailing(ports: Ports, type: string, policy: BreakerPolicy): Promise<number> {
  const [attempts = { completed: 0, failed: 0 } satisfies Attempts] = await ports.db.run(
    recentAttempts(type),
  );
  if (!shouldOpen(attempts, policy)) return 1;
  if ((await ports.db.run(openBreaker(type)))[0]) ports.log.error("breaker opened", { type, ...attempts });
  return 2;
}

function isFailure({ kind }: Outcome): boolean {
  return kind === "retry" || kind === "bury";
}

function typesOf(settlements: readonly Landing[]): string[] {
  return [...new Set(settlements.map(({ job }) => job.type))];
}
