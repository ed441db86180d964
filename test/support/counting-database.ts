// A Database that counts its statements. Round trips are the main cost of a drain in a Worker.
import { SluiceError } from "../../src/core/errors.ts";
import type { Statement } from "../../src/core/sql/statement.ts";
import type { Database } from "../../src/queue/ports.ts";

export interface CountingDatabase extends Database {
  /** How often each statement ran since the last call. */
  takeCounts(): Record<string, number>;
  /** Makes the next `times` runs of the statement with this name fail. */
  failNext(name: string, times: number): void;
}

export function createCountingDatabase(db: Database): CountingDatabase {
  let counts: Record<string, number> = {};
  const failures = new Map<string, number>();
  return {
    run<T>(statement: Statement<T>) {
      counts[statement.name] = (counts[statement.name] ?? 0) + 1;
      const left = failures.get(statement.name) ?? 0;
      if (left > 0) {
        failures.set(statement.name, left - 1);
        return Promise.reject(new SluiceError("database_unavailable", "the database is gone"));
      }
      return db.run(statement);
    },
    takeCounts() {
      const taken = counts;
      counts = {};
      return taken;
    },
    failNext: (name, times) => void failures.set(name, times),
  };
}
