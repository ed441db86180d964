// Remembers the statements that the database refused because it cannot write. /health reads this, because a plain query
// does not show that the disk is full.
import { SluiceError } from "../../core/errors.ts";
import type { IsolateState } from "../isolate-state.ts";

/** An older refusal does not count, because rounds of every kind have run their statements since. */
const forgetAfterMs = 120_000;

const refusals: readonly string[] = ["database_read_only", "database_full", "database_failing"];

export function recordFailure({ refusedWrites }: IsolateState, statement: string, error: unknown): void {
  if (error instanceof SluiceError && refusals.includes(error.code))
    refusedWrites.set(statement, { code: error.code, atMs: Date.now() });
}

/** A statement that was refused succeeds now, so the database writes again. */
export function recordSuccess({ refusedWrites }: IsolateState, statement: string): void {
  if (refusedWrites.has(statement)) refusedWrites.clear();
}

/** The error code of the latest refusal that still counts. */
export function latestRefusal({ refusedWrites }: IsolateState): string | undefined {
  return [...refusedWrites.values()].findLast(({ atMs }) => Date.now() - atMs < forgetAfterMs)?.code;
}
