// The drain of one queue: claim a batch, start its handlers, settle what has landed along with the next claim, and so on
// while there is more and the budget allows. It ends when everything that it claimed is settled.
import { describeError } from "../../core/database-errors.ts";
import type { ClaimedJob } from "../../core/job.ts";
import {
  claimingEnd,
  type DrainBudget,
  type DrainEnd,
  fitsBeforeEnd,
  hasSubrequests,
  nextBatchSize,
  type Pace,
} from "../../core/policy/drain-budget.ts";
import { claim, extend } from "../../core/sql/index.ts";
import type { JobType, Ports } from "../ports.ts";
import { createFlights } from "./running-jobs.ts";
import type { SettledCounts } from "./settle-report.ts";
import { createSettling, isRefusal } from "./unsettled-jobs.ts";

const defaultLeaseSeconds = 300;
/** How long an outcome waits for others to be settled with. */
const patienceMs = 100;

export interface DrainReport extends SettledCounts {
  queue: string;
  claimed: number;
  /** How long a claim took with what it settled, on the average; null: there was none. */
  claimMs: number | null;
  end: DrainEnd;
}

export interface DrainOptions {
  name: string;
  budget: DrainBudget;
  worker?: string;
  /** Counted on here, where several drains spend the same budget. */
  spent?: { subrequests: number };
  /** It claims no more, or not while what it has runs; that may be for long. Said over and over. */
  onClaimed?(): void;
}

export async function drain(uncounted: Ports, options: DrainOptions): Promise<DrainReport> {
  const { name, budget, spent = { subrequests: 0 }, onClaimed } = options;
  const ports = countStatements(uncounted, spent);
  const startedMs = ports.clock.nowMs();
  const elapsedMs = () => ports.clock.nowMs() - startedMs;
  const flights = createFlights(ports, startedMs + budget.hardEndMs);
  const settling = createSettling(ports, { name, isOver: () => elapsedMs() >= budget.hardEndMs });
  let claimed = 0;
  const claims = { count: 0, ms: 0 };
  let end: DrainEnd | null = null;
  let last: Pace | null = null;
  let extendAtMs = Number.POSITIVE_INFINITY;
  /** Nothing else is there: the next claim is worth it when what its breaker has on trial has ended. */
  let isWaitingForTrial = false;

  for (;;) {
    end ??= claimingEnd(budget, { elapsedMs: elapsedMs(), ...spent });
    if (!end) await claimBatch();
    if (!(await settling.settleAll())) end = "error";
    if (end || flights.jobs().some(isIsolated)) onClaimed?.();
    if (flights.size() + flights.landed() + settling.waiting() === 0) {
      const claimMs = claims.count > 0 ? claims.ms / claims.count : null;
      if (end) return { queue: name, claimed, ...settling.counts, claimMs, end };
      continue;
    }
    await waitForLanding();
    if (ports.clock.nowMs() >= extendAtMs) await extendAll();
    settling.add(flights.takeLanded());
  }

  async function claimBatch(): Promise<void> {
    // They may end this invocation: nothing else is taken along.
    if (flights.jobs().some(isIsolated)) return;
    if (isWaitingForTrial && flights.jobs().some(isOnTrial)) return;
    const types = typesThatFit(ports, budget, elapsedMs());
    const subrequestsPerJob = Math.max(0, ...types.map((type) => type.subrequests));
    const limit = nextBatchSize(budget, {
      elapsedMs: elapsedMs(),
      inFlight: flights.size(),
      subrequests: spent.subrequests,
      subrequestsPerJob,
      last,
    });
    if (types.length === 0) end = "time";
    else if (limit === 0 && flights.size() === 0) end = "subrequests";
    if (end || limit === 0) return;
    const beganMs = ports.clock.nowMs();
    const leaseSeconds = Math.min(...types.map((type) => type.leaseSeconds));
    const riders = settling.riders();
    try {
      const batch = await ports.db.run(
        claim(
          {
            queue: name,
            types,
            limit,
            leaseSeconds,
            maxBytes: budget.payloadBytes,
            takeIsolated: flights.size() === 0,
            ...(options.worker ? { worker: options.worker } : {}),
          },
          riders,
        ),
      );
      settling.arrived(riders, batch.settled);
      claims.count++;
      claims.ms += ports.clock.nowMs() - beganMs;
      claimed += batch.jobs.length;
      start(batch.jobs);
      isWaitingForTrial = !batch.hasMore && flights.jobs().some(isOnTrial);
      if (!batch.hasMore && !isWaitingForTrial) end = "empty";
      extendAtMs = Math.min(extendAtMs, beganMs + (leaseSeconds * 1000) / 3);
      last = { jobs: batch.jobs.length, ms: 0 };
    } catch (error) {
      ports.log.error("claim failed", { queue: name, ...describeError(error) });
      // What came along may be what was refused: it is settled by itself, and the next claim tells.
      if (riders.length === 0 || !isRefusal(error)) end = "error";
    }
  }

  function start(jobs: readonly ClaimedJob[]): void {
    for (const [typeName, ofType] of Map.groupBy(jobs, (job) => job.type)) {
      const type = ports.registry.find(typeName);
      if (type && fitsBeforeEnd(budget, { elapsedMs: elapsedMs(), timeoutSeconds: type.timeoutSeconds })) {
        spent.subrequests += type.subrequests * ofType.length;
        flights.start(type, ofType);
      } else {
        settling.add(ofType.map((job) => ({ job, outcome: { kind: "release" } })));
      }
    }
  }

  /**
   * Outcomes are settled together: wait for the whole batch, but not for its slowest job, unless there are hardly any
   * subrequests left to settle with.
   */
  async function waitForLanding(): Promise<void> {
    const beganMs = ports.clock.nowMs();
    const mayClaim = !end;
    if (!mayClaim && flights.landed() + settling.waiting() === 0) {
      await flights.wait({ ms: Math.max(extendAtMs - beganMs, 0), forAny: true });
    }
    await flights.wait({
      ms: Math.min(
        hasSubrequests(budget, spent) ? patienceMs : Number.POSITIVE_INFINITY,
        Math.max(extendAtMs - ports.clock.nowMs(), 0),
      ),
      forAny: false,
    });
    if (last) last.ms += ports.clock.nowMs() - beganMs;
  }

  /** One statement for all that is in flight. Whoever lost its lease is told to stop. */
  async function extendAll(): Promise<void> {
    const jobs = flights.jobs();
    // A lease is never shortened, so the shortest one serves them all.
    const seconds = Math.min(
      ...jobs.map((job) => ports.registry.find(job.type)?.leaseSeconds ?? defaultLeaseSeconds),
    );
    extendAtMs = jobs.length > 0 ? ports.clock.nowMs() + (seconds * 1000) / 3 : Number.POSITIVE_INFINITY;
    if (jobs.length === 0) return;
    try {
      const held = new Set((await ports.db.run(extend(jobs, { seconds }))).map((job) => job.id));
      flights.abort(new Set(jobs.map((job) => job.id).filter((id) => !held.has(id))));
    } catch (error) {
      // Tried again soon: the lease is three times as long as the time between two extensions.
      ports.log.warn("extend failed", { queue: name, ...describeError(error) });
      extendAtMs = ports.clock.nowMs() + 1000;
    }
  }
}

function countStatements(ports: Ports, spent: { subrequests: number }): Ports {
  const run: Ports["db"]["run"] = (statement) => {
    spent.subrequests++;
    return ports.db.run(statement);
  };
  return { ...ports, db: { run } };
}

function isOnTrial(job: ClaimedJob): boolean {
  return job.isTrial;
}

/** It was abandoned, and may be what ended its invocation. */
function isIsolated(job: ClaimedJob): boolean {
  return job.abandonments > 0;
}

/** A type whose time-out does not fit before the hard end is left to a drain that has the time. */
function typesThatFit(ports: Ports, budget: DrainBudget, elapsedMs: number): JobType[] {
  return ports.registry
    .all()
    .filter(
      (type) =>
        type.work.kind !== "pulled" &&
        fitsBeforeEnd(budget, { elapsedMs, timeoutSeconds: type.timeoutSeconds }),
    );
}
