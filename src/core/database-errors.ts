// Maps a SQLSTATE to a stable code and a message that says what is wrong and what to do. The message goes to callers, so
// it names no host, table or statement.
import { type DatabaseErrorCode, type ErrorCode, type Fault, SluiceError } from "./errors.ts";

interface Meaning {
  code: DatabaseErrorCode;
  message: string;
}

/** The first match counts. An error without a SQLSTATE means that there was no answer. */
const meanings: readonly (readonly [sqlstate: RegExp, meaning: Meaning])[] = [
  // 58000 is what Hyperdrive says when it cannot reach the database.
  [/^$|^08|^57P0|^53300|^58000/, unavailable("the database is out of reach")],
  [/^28|^3D/, unavailable("the database does not let the Worker in: check DATABASE_URL")],
  [/^42501/, unavailable("the role of DATABASE_URL lacks a right in Sluice's schema: grant it")],
  [/^25006/, { code: "database_read_only", message: readOnlyText() }],
  [/^53100/, { code: "database_full", message: "the disk of the database is full: make room on it" }],
  [/^53200/, failing("it is out of memory")],
  [/^53/, failing("it has reached one of its limits")],
  [/^58/, failing("its disk or its system reported an error, see the server's log")],
  [/^40001|^40P01/, busy("the statement collided with others twice in a row")],
  [/^55P03/, busy("a lock was not free within lock_timeout")],
  [/^57014/, busy("the statement was cancelled, or took longer than statement_timeout allows")],
  [/^42P01|^3F000|^42883|^42703|^42704/, { code: "schema_outdated", message: outdatedText() }],
];

/** Raised by Sluice's own functions (migrations/functions/). Their message is meant for the caller. */
const refusals = new Map<string, ErrorCode>([
  ["SL422", "idempotency_conflict"],
  ["SL429", "too_many_workers"],
  ["SL503", "schema_outdated"],
  ["22023", "request_invalid"],
]);

/** Undefined if the statement itself is wrong: a bug in Sluice. */
export function databaseError(
  sqlstate: string,
  { message, cause }: { message: string; cause: unknown },
): SluiceError | undefined {
  const refusal = refusals.get(sqlstate);
  if (refusal) return new SluiceError(refusal, message, { cause, faults: faultsIn(message) });
  const meaning = meanings.find(([pattern]) => pattern.test(sqlstate))?.[1];
  return meaning && new SluiceError(meaning.code, meaning.message, { cause });
}

/** A message of the engine about a field starts with the field's name. */
function faultsIn(message: string): Fault[] {
  const [, path, fault] = /^([a-z_]+): (.+)$/s.exec(message) ?? [];
  return path && fault ? [{ path, message: fault }] : [];
}

/**
 * True if Postgres rolled the statement back because of others. It answered, so we know that nothing was done. So every
 * statement can be run once more, even one that must not be repeated after a lost answer.
 *
 * `sluice migrate` collides too: a statement that runs at the moment when a function is replaced by one with other
 * arguments fails with 42883 (undefined function) or XX000 (cache lookup failed), and one that reads a view to which columns are
 * being added with 42P13 or 42804 (return type mismatch). The next run finds the new function.
 */
export function isCollision(sqlstate: string): boolean {
  return ["40001", "40P01", "42804", "42883", "42P13", "XX000"].includes(sqlstate);
}

/** What the driver reported, under the statement's name. It is for logs: callers of the API get a SluiceError. */
export class StatementError extends Error {
  override readonly name = "StatementError";
  readonly statement: string;
  /** The SQLSTATE, where there is one. */
  readonly code: string | undefined;

  constructor(statement: string, cause: unknown) {
    super(`${statement}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.statement = statement;
    this.code = sqlstateOf(cause);
  }
}

/** What a log line says of an error. */
export function describeError(error: unknown): { message: string; statement?: string; sqlstate?: string } {
  const statement = statementOf(error);
  const sqlstate = sqlstateOf(error);
  return {
    message: error instanceof Error ? error.message : String(error),
    ...(statement && { statement }),
    ...(sqlstate && { sqlstate }),
  };
}

function statementOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  return error instanceof StatementError ? error.statement : statementOf(error.cause);
}

/** The SQLSTATE of the innermost cause. The drivers call it `code`. */
export function sqlstateOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code } = error as { code?: unknown };
  const isSqlstate = typeof code === "string" && /^[0-9A-Z]{5}$/.test(code);
  return isSqlstate ? code : sqlstateOf(error.cause);
}

function unavailable(message: string): Meaning {
  return { code: "database_unavailable", message };
}

function failing(message: string): Meaning {
  return { code: "database_failing", message: `the database server is in trouble: ${message}` };
}

function busy(message: string): Meaning {
  return { code: "database_busy", message: `the database is busy: ${message}` };
}

function readOnlyText(): string {
  const cause = "it is a standby, or default_transaction_read_only is on";
  return `the database takes no writes: ${cause}. Point DATABASE_URL to the primary, or turn that setting off`;
}

function outdatedText(): string {
  return "Sluice's schema is missing in the database, or older than this Worker: run `npx sluice migrate`";
}
