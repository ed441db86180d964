// The Database port over a `pg` pool: the same statements as in the Worker, over another transport.
import type pg from "pg";
import { StatementError } from "../core/database-errors.ts";
import { compile } from "../core/sql/statement.ts";
import type { Database } from "../queue/ports.ts";

export function createPgDatabase(pool: pg.Pool, schema = "sluice"): Database {
  return {
    async run(statement) {
      const { text, values } = compile(statement, schema);
      const { rows } = await pool.query(text, values).catch((error: unknown) => {
        throw new StatementError(statement.name, error);
      });
      return statement.decode(rows);
    },
  };
}
