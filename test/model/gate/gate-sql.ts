// Runs statements on a given connection, and transactions that are committed or rolled back on request.
import type pg from "pg";
import { compile, type Statement } from "../../../src/core/sql/statement.ts";

export async function runOn<T>(client: pg.Pool | pg.ClientBase, statement: Statement<T>): Promise<T> {
  const { text, values } = compile(statement);
  const { rows } = await client.query(text, values);
  return statement.decode(rows);
}

export async function inTransaction<T>(
  pool: pg.Pool,
  { isCommitted }: { isCommitted: boolean },
  work: (client: pg.ClientBase) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const result = await work(client);
    await client.query(isCommitted ? "commit" : "rollback");
    return result;
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
}
