// A Database that wraps the real one and adds faults: each call draws a fault with the plan's seed. The caller cannot
// tell a statement that was committed from one that was never sent.
import { SluiceError } from "../../src/core/errors.ts";
import type { Database } from "../../src/queue/ports.ts";
import type { SeededRandom } from "./seeded-random.ts";

export const faults = ["unsent", "reply lost", "twice", "slow"] as const;
export type Fault = (typeof faults)[number];

export class DatabaseFault extends SluiceError {
  constructor(message: string) {
    super("database_unavailable", message);
  }
}

export interface FaultPlan {
  random: SeededRandom;
  /** The share of calls that fail. */
  share: number;
  /** Runs while a slow call is under way. */
  meanwhile(): Promise<void>;
}

export function createFaultyDatabase(
  db: Database,
  { random, share, meanwhile }: FaultPlan,
): Database & { faultCounts: Map<Fault, number> } {
  const faultCounts = new Map<Fault, number>();
  return {
    faultCounts,
    async run(statement) {
      if (!random.isLikely(share)) return db.run(statement);
      const fault = random.pick(faults);
      faultCounts.set(fault, (faultCounts.get(fault) ?? 0) + 1);
      switch (fault) {
        case "unsent":
          throw new DatabaseFault(`${statement.name} was not sent`);
        case "reply lost":
          await db.run(statement);
          throw new DatabaseFault(`the reply to ${statement.name} was lost`);
        case "twice": {
          const [, second] = await Promise.all([db.run(statement), db.run(statement)]);
          return second;
        }
        case "slow":
          await meanwhile();
          return db.run(statement);
        default:
          return fault satisfies never;
      }
    },
  };
}
