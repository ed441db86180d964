// The database as a page reads it: Postgres stops each of its statements after two seconds, and the page says so. Somebody looks
// at it and would rather change the search than wait, and a page that is refreshed must not pile up statements.
import { sqlstateOf } from "../../core/database-errors.ts";
import { SluiceError } from "../../core/errors.ts";
import type { Database } from "../../queue/ports.ts";

export const pageLimitMs = 2_000;

export function pageDatabase(db: Database): Database {
  return {
    async run(statement) {
      try {
        return await db.run(statement, { limitMs: pageLimitMs });
      } catch (error) {
        if (sqlstateOf(error) !== "57014") throw error;
        throw new SluiceError("page_too_slow", tooSlowText, { cause: error });
      }
    },
  };
}

const tooSlowText =
  `this took too long: the database stopped it after ${pageLimitMs / 1000} s. Search for less, or try again later: ` +
  "the database may be busy, or a lock may be held. `npx sluice doctor` shows the oldest transaction";
