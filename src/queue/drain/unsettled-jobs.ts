// Settles what a drain's handlers have ended with, in batches bounded by rows and bytes, and keeps the drain's report. A
// settle is safe to repeat: what did not get through waits for the next turn. What the database refuses is settled by
// halves, so that one row holds no other back.
import { SluiceError } from "../../core/errors.ts";
import type { Settled } from "../../core/settlements.ts";
import type { Ports } from "../ports.ts";
import { type JudgedTypes, settleAttempts } from "../settle.ts";
import type { Landing } from "./running-jobs.ts";
import { createSettleReport, type SettledCounts } from "./settle-report.ts";
import { storableText, textOf } from "./storable.ts";

const outcomesPerSettle = 1000;
/** Outputs are dear. */
const outcomeBytesPerSettle = 512 * 1024;
/** Past this the leases run out, and the reaper brings the jobs back. */
const triesInARow = 8;
const pauseMs = 25;
/** So many rows in a row that are refused whatever they say: it is not the rows. */
const refusalsInARow = 3;

export interface Settling {
  readonly counts: SettledCounts;
  waiting(): number;
  add(landings: readonly Landing[]): void;
  /** Everything that waits. False: it failed, and what is left waits for another turn. */
  settleAll(): Promise<boolean>;
  /**
   * What the next claim can take along: all that waits, if it is completed work that fits in one batch. Breakers are
   * judged between a failure, or a probe, and the next claim.
   */
  riders(): readonly Landing[];
  /** The claim has settled them. */
  arrived(riders: readonly Landing[], settled: readonly Settled[]): void;
}

export function createSettling(
  ports: Ports,
  { name, isOver }: { name: string; isOver(): boolean },
): Settling {
  const report = createSettleReport(ports, name);
  const judgedAtMs: JudgedTypes = new Map();
  let waiting: Landing[] = [];
  let failures = 0;
  let refusals = 0;

  return {
    counts: report.counts,
    waiting: () => waiting.length,
    add: (landings) => void waiting.push(...landings),
    async settleAll() {
      while (waiting.length > 0) {
        if (!(await settleBatch(firstBatch(waiting)))) return false;
      }
      return true;
    },
    riders() {
      const mayRide = waiting.every(({ job, outcome }) => outcome.kind === "complete" && !job.isProbe);
      return mayRide && firstBatch(waiting).length === waiting.length ? waiting : [];
    },
    arrived,
  };

  /** The first ones that wait. */
  function arrived(batch: readonly Landing[], settled: readonly Settled[]): void {
    report.add(batch, settled);
    waiting = waiting.slice(batch.length);
  }

  async function settleBatch(batch: readonly Landing[]): Promise<boolean> {
    const error = await send(batch);
    if (!error) return true;
    if (!isRefusal(error)) return tryLater(batch, error);
    const [only] = batch;
    if (only && batch.length === 1) return settleRefused(only, error);
    const half = Math.ceil(batch.length / 2);
    return (await settleBatch(batch.slice(0, half))) && settleBatch(batch.slice(half));
  }

  /** Its own row was refused: that is a failed attempt. If even that is refused, its lease runs out. */
  async function settleRefused(landing: Landing, refusal: Error): Promise<boolean> {
    const message = storableText(`its outcome was refused: ${textOf(refusal)}`, 1000);
    const error = await send([{ ...landing, outcome: { kind: "retry", message } }]);
    if (!error) return true;
    if (!isRefusal(error) || ++refusals >= refusalsInARow) return tryLater([landing], error);
    ports.log.error("outcome refused", { queue: name, job_id: landing.job.id, message: textOf(error) });
    arrived([landing], []);
    return true;
  }

  /** The error, if it did not get through. */
  async function send(batch: readonly Landing[]): Promise<Error | undefined> {
    try {
      const settled = await settleAttempts(ports, batch, judgedAtMs);
      failures = 0;
      refusals = 0;
      arrived(batch, settled);
      return undefined;
    } catch (error) {
      return error as Error;
    }
  }

  async function tryLater(batch: readonly Landing[], error: Error): Promise<boolean> {
    failures++;
    ports.log.error("settle failed", { queue: name, jobs: batch.length, message: textOf(error) });
    if (failures >= triesInARow || isOver()) arrived(waiting, []);
    else await new Promise((resolve) => setTimeout(resolve, pauseMs * 2 ** failures));
    return false;
  }
}

/** For what it says, and not because the database cannot work now: sent again it would be refused again. */
export function isRefusal(error: unknown): boolean {
  return !(error instanceof SluiceError && /^(database|schema)_/.test(error.code));
}

function firstBatch(landings: readonly Landing[]): readonly Landing[] {
  let bytes = 0;
  const size = landings.findIndex(({ outcome }, index) => {
    bytes +=
      outcome.kind === "complete" && outcome.output !== null ? JSON.stringify(outcome.output).length : 0;
    return index > 0 && (bytes > outcomeBytesPerSettle || index >= outcomesPerSettle);
  });
  return size === -1 ? landings : landings.slice(0, size);
}
