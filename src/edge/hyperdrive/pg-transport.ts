// The transport over `pg`, through a Hyperdrive binding. An invocation opens its first connection with its first statement,
// and closes them all at its end. Hyperdrive pools the connections to Postgres by transaction, so nothing is kept in a
// session, and statements have no names.
import pg from "pg";
import type { CompiledStatement, Row } from "../../core/sql/statement.ts";
import type { DatabaseKind, Transport } from "../database/transport.ts";
import { createDeadline, type Deadline } from "./deadline.ts";

/**
 * A connection runs one statement at a time, and an invocation may have six open connections. Two are enough that a slow
 * statement holds up no other, and leave four for the requests of handlers.
 */
const maxConnections = 2;
/** As long as the longest statement, because one that waits for a free connection waits for that. */
const connectWithinMs = 30_000;

/** The Postgres behind the binding HYPERDRIVE. */
export const hyperdriveDatabase: DatabaseKind = {
  isIn: ({ hyperdriveUrl }) => hyperdriveUrl !== undefined,
  open: ({ hyperdriveUrl = "" }) => createPgTransport(hyperdriveUrl),
};

export function createPgTransport(connectionString: string): Transport {
  const pool = new pg.Pool({
    connectionString,
    max: maxConnections,
    idleTimeoutMillis: 0,
    connectionTimeoutMillis: connectWithinMs,
  });
  // A statement that needs a broken connection gets the error itself. Without a listener the error would end the Worker.
  pool.on("error", () => {});
  pool.on("connect", (client) => void client.on("error", () => {}));
  return {
    async send(statements, { timeoutMs, isReadCommitted }) {
      const deadline = createDeadline(timeoutMs);
      const client = await takeClient(pool, deadline);
      const running = isReadCommitted ? runTogether(client, statements) : runEach(client, statements);
      try {
        const rows = await deadline.limit(running);
        client.release();
        return rows;
      } catch (error) {
        client.release(isReadCommitted || isBroken(error));
        throw error;
      }
    },
    sqlstateOf: (error) => (error instanceof pg.DatabaseError ? (error.code ?? "") : ""),
    mayCache: true,
    close: () => pool.end(),
  };
}

async function takeClient(pool: pg.Pool, deadline: Deadline): Promise<pg.PoolClient> {
  const connecting = pool.connect();
  try {
    return await deadline.limit(connecting);
  } catch (error) {
    connecting.then(
      (client) => client.release(),
      () => {},
    );
    throw error;
  }
}

async function runEach(client: pg.PoolClient, statements: readonly CompiledStatement[]): Promise<Row[]> {
  let rows: Row[] = [];
  for (const { text, values } of statements) rows = (await client.query<Row>(text, values)).rows;
  return rows;
}

/** If one fails, the connection is closed, and that rolls the transaction back. */
async function runTogether(client: pg.PoolClient, statements: readonly CompiledStatement[]): Promise<Row[]> {
  await client.query("begin isolation level read committed");
  const rows = await runEach(client, statements);
  await client.query("commit");
  return rows;
}

/** After an error of its statement a connection can be used again. After a lost or late answer, or a FATAL error, it cannot. */
function isBroken(error: unknown): boolean {
  return !(error instanceof pg.DatabaseError && error.severity === "ERROR");
}
