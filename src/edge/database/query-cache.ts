// Hyperdrive's cache is on unless somebody turns it off. It could answer a claim with the jobs of an earlier claim, so a
// Worker that finds a cache refuses to work. It raises a number and reads it back by a select that a cache may keep.
// The texts of all other statements keep a cache from answering (core/sql/statement.ts), but that rests on its rules.
import { SluiceError } from "../../core/errors.ts";
import { raiseCacheProbe, readCacheProbe } from "../../core/sql/index.ts";
import type { Database } from "../../queue/ports.ts";
import type { IsolateState } from "../isolate-state.ts";

/** Once in each isolate. While there is a cache, each statement looks again, so turning it off is enough. */
export async function refuseCache(isolate: IsolateState, db: Database): Promise<void> {
  if (isolate.isUncached) return;
  if (await answersFromCache(db)) throw new SluiceError("database_cached", cachedText);
  isolate.isUncached = true;
}

async function answersFromCache(db: Database): Promise<boolean> {
  await db.run(readCacheProbe()); // a cache has an answer from now on
  const raised = await db.run(raiseCacheProbe());
  return (await db.run(readCacheProbe())) < raised;
}

const cachedText =
  "Hyperdrive answers queries from its cache, so jobs could get lost: turn it off with " +
  "`npx wrangler hyperdrive update <id> --caching-disabled true`; it may take two minutes until it has forgotten";
