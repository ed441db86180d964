// The Database port over `pg`, for the command line. Each statement is a transaction with its own isolation level, so the
// default of the role or the database does not matter, and nothing is set for the session of a pooler.
import pg from "pg";
import { databaseError, isCollision, StatementError } from "../core/database-errors.ts";
import { requireSchemaVersion } from "../core/sql/schema-version.ts";
import { compile, type Row, type Statement } from "../core/sql/statement.ts";
import type { Database } from "../queue/ports.ts";
import { explainConnectError, parseTarget } from "./connect.ts";
import { CommandError, exitCodes } from "./exit.ts";

export interface PgDatabase extends Database {
  close(): Promise<void>;
}

const connectWithinMs = 15_000;
const answerWithinMs = 30_000;
const maxConnections = 4;

/** `source` is where the URL came from, for errors: a variable or a flag. */
export function createPgDatabase(
  databaseUrl: string,
  { schema, source }: { schema: string; source: string },
): PgDatabase {
  const target = parseTarget(databaseUrl);
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    connectionTimeoutMillis: connectWithinMs,
    query_timeout: answerWithinMs,
    max: maxConnections,
    application_name: "sluice cli",
  });
  pool.on("error", () => {}); // an idle connection was lost: the next statement opens another
  let fitsSchema = false;

  async function send(statement: Statement<unknown>): Promise<Row[]> {
    const client = await pool.connect().catch((error: Error) => {
      const words = explainConnectError(error, target).replaceAll("DATABASE_URL", source);
      throw new CommandError(words, exitCodes.outOfReach, { cause: error });
    });
    try {
      await client.query("begin isolation level read committed");
      if (!fitsSchema) await query(client, requireSchemaVersion());
      fitsSchema = true;
      const rows = await query(client, statement);
      await client.query("commit");
      client.release();
      return rows;
    } catch (error) {
      client.release(true); // closes the connection, which ends the transaction
      throw error;
    }
  }

  async function query(client: pg.PoolClient, statement: Statement<unknown>): Promise<Row[]> {
    const { text, values } = compile(statement, schema);
    const { rows } = await client.query(text, values).catch((error: Error) => {
      const sqlstate = error instanceof pg.DatabaseError ? (error.code ?? "") : "";
      const cause = new StatementError(statement.name, error);
      throw Object.assign(databaseError(sqlstate, { message: error.message, cause }) ?? cause, {
        isCollision: isCollision(sqlstate),
      });
    });
    return rows;
  }

  return {
    async run(statement) {
      const rows = await send(statement).catch((error: { isCollision?: boolean }) => {
        if (!error.isCollision) throw error;
        return send(statement);
      });
      return statement.decode(rows);
    },
    close: () => pool.end(),
  };
}
