// What a drain keeps from one step to the next.
import {
  type DrainBudget,
  type DrainEnd,
  fitsBeforeEnd,
  hasStatementsToSpare,
  type Pace,
} from "../../core/policy/drain-budget.ts";
import type { JobType, Ports } from "../ports.ts";
import { createLeaseUpkeep, type LeaseUpkeep } from "./extend-leases.ts";
import { createRingMember, type RingMember } from "./ring-member.ts";
import { createRunningJobs, type RunningJobs } from "./running-jobs.ts";
import { createStepStore } from "./step-store.ts";
import { createUnsettledJobs, type UnsettledJobs } from "./unsettled-jobs.ts";

export interface DrainOptions {
  queue: string;
  budget: DrainBudget;
  worker?: string;
  /** Drains that share one budget count on the same object. */
  spent?: { subrequests: number };
  /** Called when the drain claims no more, or claims nothing while its present jobs run. It is called repeatedly. */
  onClaimed?(): void;
}

export interface Drain extends DrainOptions {
  /** Each statement is counted. */
  readonly ports: Ports;
  readonly spent: { subrequests: number };
  readonly startedMs: number;
  readonly running: RunningJobs;
  readonly unsettled: UnsettledJobs;
  readonly leases: LeaseUpkeep;
  readonly claims: { count: number; ms: number; jobs: number };
  readonly member: RingMember;
  /** Why the drain claims no more. Null if it may still claim. */
  end: DrainEnd | null;
  madeJobs: boolean;
  lastBatch: Pace | null;
  /** Only a type on trial has more jobs. It gives out the next ones when those that run have ended. */
  isWaitingForTrial: boolean;
  /**
   * Null if there may be more jobs to claim now. Otherwise only the ends of this drain's jobs can bring more, and this is how
   * many such ends were ahead when it last claimed.
   */
  releasesAhead: number | null;
  /** When the shares of jobs that this drain took may start their next ones, by the rate of the queue. Null: no rate. */
  nextStartMs: number | null;
}

export function createDrain(uncounted: Ports, options: DrainOptions): Drain {
  const { queue, budget, spent = { subrequests: 0 } } = options;
  const ports = countStatements(uncounted, spent);
  const startedMs = ports.clock.nowMs();
  const endMs = startedMs + budget.hardEndMs;
  const hasTime = (timeoutSeconds: number) =>
    fitsBeforeEnd(budget, { elapsedMs: ports.clock.nowMs() - startedMs, timeoutSeconds });
  const hasStatements = () => hasStatementsToSpare(budget, spent);
  const running = createRunningJobs(ports, {
    endMs,
    canStart: ({ timeoutSeconds }: JobType) => hasTime(timeoutSeconds),
    steps: {
      store: createStepStore(ports),
      hasRoom: (seconds) => hasTime(seconds) && hasStatements(),
    },
  });
  return {
    ...options,
    ports,
    spent,
    startedMs,
    running,
    unsettled: createUnsettledJobs(ports, { queue, endMs }),
    leases: createLeaseUpkeep({ ports, queue, running, canLook: hasStatements }),
    claims: { count: 0, ms: 0, jobs: 0 },
    member: createRingMember(options.worker),
    end: null,
    madeJobs: false,
    lastBatch: null,
    isWaitingForTrial: false,
    releasesAhead: null,
    nextStartMs: null,
  };
}

function countStatements(ports: Ports, spent: { subrequests: number }): Ports {
  const run: Ports["db"]["run"] = (statement) => {
    spent.subrequests++;
    return ports.db.run(statement);
  };
  return { ...ports, db: { run } };
}
