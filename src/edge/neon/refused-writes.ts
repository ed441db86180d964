// Remembers which statements a database refused that answers but cannot write. /health reads it, because a plain query
// does not show that the disk is full.
import { SluiceError } from "../../core/errors.ts";
import type { IsolateState } from "../isolate-state.ts";

/** After so long a refusal says nothing: rounds of every kind have tried their own statements since. */
const forgetAfterMs = 120_000;

const refusals: readonly string[] = ["database_read_only", "database_full", "database_failing"];

export function noteFailure({ refusedWrites }: IsolateState, statement: string, error: unknown): void {
  if (error instanceof SluiceError && refusals.includes(error.code))
    refusedWrites.set(statement, { code: error.code, atMs: Date.now() });
}

/** A statement that was refused succeeds now, so the database writes again. */
export function noteSuccess({ refusedWrites }: IsolateState, statement: string): void {
  if (refusedWrites.has(statement)) refusedWrites.clear();
}

/** The error code of the latest refusal that still counts. */
export function latestRefusal({ refusedWrites }: IsolateState): string | undefined {
  return [...refusedWrites.values()].findLast(({ atMs }) => Date.now() - atMs < forgetAfterMs)?.code;
}
