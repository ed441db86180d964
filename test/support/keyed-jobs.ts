// Jobs with keys by short names, for tests of order and shares: the job "a1" has the key "a".
import type { ClaimedJob, NewJob, Outcome } from "../../src/core/job.ts";
import type { Settled } from "../../src/core/settlements.ts";
import type { Claim } from "../../src/core/sql/claim.ts";
import type { TestDatabase } from "./test-database.ts";
import { complete, only, type Verbs, verbsOf } from "./verbs.ts";

export interface KeyedJobs {
  verbs: Verbs;
  /** Enqueues jobs in one call: "a1 a2 b1". */
  put(names: string, fields?: Partial<NewJob>): Promise<void>;
  /** The arguments of an enqueue of these jobs, for another session. */
  requests(names: string, fields?: Partial<NewJob>): NewJob[];
  /** Claims until there is nothing more, and answers with the names in the order of the claims. */
  take(options?: Partial<Claim>): Promise<string>;
  /** Claims and completes as a drain does: until a claim finds nothing and says that there is no more. */
  drain(options?: Partial<Claim>): Promise<string>;
  /** Settles held jobs in one call, and answers with what was applied. */
  end(names: string, outcome?: Outcome): Promise<string>;
  /** The last claim of a job. */
  held(name: string): ClaimedJob;
  idOf(name: string): Promise<string>;
  statusOf(name: string): Promise<string>;
  /** What is scheduled becomes due now, in its order. */
  makeDue(): Promise<void>;
}

export type KeyField = "partitionKey" | "fairKey";

/** A claim that finds a key's row locked may say that there is more for as long as the lock is held. */
const claimsAtMost = 6;

/** Microseconds apart. No cursor is as near to the clock as that, while the test does nothing else. */
const makeDueText = `
  update sluice.scheduled
  set run_at = statement_timestamp() - make_interval(secs => 1e-6 * due.later)
  from (select id, row_number() over (order by run_at desc, id desc) as later from sluice.scheduled) as due
  where scheduled.id = due.id`;

export function keyedJobsOf(
  db: TestDatabase,
  keyField: KeyField = "partitionKey",
  defaults: Partial<Claim> = {},
): KeyedJobs {
  const verbs = verbsOf(db);
  const heldJobs = new Map<string, ClaimedJob>();
  const jobs: KeyedJobs = {
    verbs,
    requests: (names, fields = {}) =>
      split(names).map((name) => ({
        ...{ type: "echo", payload: { name }, [keyField]: keyOf(name) },
        ...fields,
      })),
    put: async (names, fields) => void (await verbs.enqueue(...jobs.requests(names, fields))),
    take: async (options = {}) => join(await takeAll(options)),
    drain: async (options = {}) => {
      const order: string[] = [];
      for (;;) {
        const taken = await takeAll(options);
        if (taken.length === 0) return order.join(" ");
        order.push(...taken.map(nameOf));
        await verbs.settle(taken, complete);
      }
    },
    end: async (names, outcome = complete) => {
      const settled = await verbs.settle(split(names).map(jobs.held), outcome);
      return split(names)
        .filter((_, index) => (settled[index] as Settled).applied)
        .join(" ");
    },
    held: (name) => only([heldJobs.get(name)].filter((job) => job !== undefined)),
    idOf: async (name) =>
      only(await verbs.query<{ id: string }>("select id from sluice.job where payload->>'name' = $1", [name]))
        .id,
    statusOf: async (name) => (await verbs.find(await jobs.idOf(name))).status,
    makeDue: async () => void (await verbs.query(makeDueText)),
  };

  async function takeAll(options: Partial<Claim>): Promise<ClaimedJob[]> {
    const taken: ClaimedJob[] = [];
    for (let claims = 0; claims < claimsAtMost; claims++) {
      const batch = await verbs.claimBatch({ ...defaults, ...options });
      taken.push(...batch.jobs);
      if (!batch.hasMore) break;
    }
    for (const job of taken) heldJobs.set(nameOf(job), job);
    return taken;
  }

  return jobs;
}

export const nameOf = (job: { payload: ClaimedJob["payload"] }) => String(job.payload.name);
export const keyOf = (name: string) => name.replace(/\d+$/, "");
export const join = (jobs: readonly ClaimedJob[]) => jobs.map(nameOf).join(" ");
const split = (names: string) => names.split(" ").filter((name) => name !== "");

/** The names of one key's jobs, in the order that a list has them. */
export const ofKey = (key: string, names: string) =>
  split(names)
    .filter((name) => keyOf(name) === key)
    .join(" ");

/** "a1 a2 … a9" for ("a", 1, 9). */
export const numbered = (key: string, from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `${key}${from + index}`).join(" ");

/** For lists whose order does not matter. */
export const sorted = (names: string) => split(names).toSorted().join(" ");
