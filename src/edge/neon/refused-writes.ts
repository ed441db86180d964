// Which statements this isolate last saw refused by a database that answers and yet cannot write: /health reads it, since
// a look at the database alone does not show that its disk is full.
import { SluiceError } from "../../core/errors.ts";

/** A statement that is not tried again says nothing after so long: the next round of any kind tries its own. */
const forgetAfterMs = 120_000;

const told: readonly string[] = ["database_read_only", "database_full", "database_failing"];

/** By database, since tests have several; then by the statement's name. */
const refused = new Map<string, Map<string, { code: string; atMs: number }>>();

export function noteFailure(databaseUrl: string, statement: string, error: unknown): void {
  if (!(error instanceof SluiceError) || !told.includes(error.code)) return;
  const ofDatabase = refused.get(databaseUrl) ?? new Map();
  refused.set(databaseUrl, ofDatabase.set(statement, { code: error.code, atMs: Date.now() }));
}

/** One that was refused gets through: the database writes again. */
export function noteSuccess(databaseUrl: string, statement: string): void {
  if (refused.get(databaseUrl)?.has(statement)) refused.delete(databaseUrl);
}

/** The code of a refusal that still counts. */
export function refusalOfWrites(databaseUrl: string): string | undefined {
  const entries = [...(refused.get(databaseUrl)?.values() ?? [])];
  return entries.findLast(({ atMs }) => Date.now() - atMs < forgetAfterMs)?.code;
}
