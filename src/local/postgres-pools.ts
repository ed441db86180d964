// The proxy's connections to the local Postgres: one pool for each user and database.
import pg from "pg";

export interface Login {
  user: string;
  database: string;
}

export interface Pools {
  // Runs the work on a connection of its own, and closes the connection if the work left a transaction open.
  withClient<T>(login: Login, work: (client: pg.ClientBase) => Promise<T>): Promise<T>;
  closeDatabase(name: string): Promise<void>;
  close(): Promise<void>;
}

const connectionsPerPool = 20;
/** Short, so that a test can drop its database soon after its last query. */
const idleMs = 1_000;

export function openPools(server: { host: string; port: number }): Pools {
  const pools = new Map<string, { login: Login; pool: pg.Pool }>();
  const busy = new Set<pg.PoolClient>();

  const poolOf = (login: Login): pg.Pool => {
    const key = JSON.stringify([login.user, login.database]);
    const existing = pools.get(key);
    if (existing) return existing.pool;
    const limits = { max: connectionsPerPool, idleTimeoutMillis: idleMs };
    const pool = new pg.Pool({ ...server, ...login, ...limits });
    // Errors of a connection that Postgres ends are ignored: the query on it fails, or the next query opens another one.
    // Each connection needs a listener all the time. The pool has one only while the connection is idle, and an error
    // event without a listener would end the process.
    pool.on("error", () => {});
    pool.on("connect", (client) => client.on("error", () => {}));
    pools.set(key, { login, pool });
    return pool;
  };

  const closeWhere = async (matches: (login: Login) => boolean) => {
    const closing = [...pools].filter(([, { login }]) => matches(login));
    for (const [key] of closing) pools.delete(key);
    await Promise.all(closing.map(([, { pool }]) => pool.end()));
  };

  return {
    async withClient(login, work) {
      const client = await poolOf(login).connect();
      busy.add(client);
      let isBroken = false;
      try {
        return await work(client);
      } catch (error) {
        // Postgres closes the connection a moment after a FATAL error.
        isBroken = !(error instanceof pg.DatabaseError && error.severity === "ERROR");
        throw error;
      } finally {
        busy.delete(client);
        client.release(isBroken || client.getTransactionStatus() !== "I");
      }
    },
    closeDatabase: (name) => closeWhere(({ database }) => database === name),
    async close() {
      // pool.end() waits for running queries. Ending the clients first breaks these off.
      for (const client of busy) void (client as unknown as pg.Client).end();
      await closeWhere(() => true);
    },
  };
}
