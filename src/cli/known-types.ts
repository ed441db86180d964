// The job types that a database has seen, for the command line over SQL. It does not know the deployment's code: neither
// the schemas of payloads nor the options of types.
import * as z from "zod";
import { isOwnType } from "../core/alarms/alarm.ts";
import type { Books } from "../core/sql/books.ts";
import { defineJob } from "../jobs/define.ts";
import { createRegistry, type JobRegistry } from "../jobs/registry.ts";

/** A type whose jobs were all in one queue keeps it. A type with several gets the default. */
export function knownTypes(books: readonly Pick<Books, "type" | "queue">[]): JobRegistry {
  const byType = Map.groupBy(books, ({ type }) => type);
  const jobs = [...byType]
    .filter(([type]) => !isOwnType(type))
    .map(([type, rows]) => {
      const [queue, ...others] = new Set(rows.map((row) => row.queue));
      return defineJob(type, {
        payload: z.looseObject({}),
        ...(queue && others.length === 0 && { queue }),
        run: neverRun,
      });
    });
  return createRegistry(jobs);
}

function neverRun(): never {
  throw new Error("the command line runs no jobs");
}
