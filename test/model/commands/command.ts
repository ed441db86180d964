// A command of the model test does one thing to Postgres and to the model, and then compares them.
import fc from "fast-check";
import type pg from "pg";
import type { TestDatabase } from "../../support/test-database.ts";
import { compare } from "../compare.ts";
import { priorities, type QueueModel } from "../queue-model.ts";

export interface Real {
  db: TestDatabase;
  /** One for each open transaction of the model, in the same order. */
  sessions: pg.PoolClient[];
}

export const types = Object.keys(priorities);
export const queue = "default";
/** Picks one of the jobs, claims or transactions that exist when the command runs. */
export const anyPick = fc.nat({ max: 1000 });

type Run = (model: QueueModel, real: Real) => Promise<unknown>;
export type IsPossible = (model: QueueModel) => boolean;

export function command(
  name: string,
  run: Run,
  isPossible: IsPossible = () => true,
): fc.AsyncCommand<QueueModel, Real> {
  return {
    check: isPossible,
    toString: () => name,
    async run(model, real) {
      await run(model, real);
      await compare(model, real.db);
    },
  };
}
