// Connections of the proxy to the local Postgres, one pool a user and database.
import pg from "pg";

export interface Login {
  user: string;
  database: string;
}

export interface Pools {
  // Runs the work on a connection that is nobody else's, and takes it back clean.
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
    const known = pools.get(key);
    if (known) return known.pool;
    const limits = { max: connectionsPerPool, idleTimeoutMillis: idleMs };
    const pool = new pg.Pool({ ...server, ...login, ...limits });
    // A connection that Postgres ends is no news: the query on it fails, or the next one opens another. The listener is
    // on each connection from its start to its end: one that is ended between two queries of a batch, or between the
    // pool and who asked for it, has no other, and an error without one would end the process.
    pool.on("error", () => {});
    pool.on("connect", (client) => client.on("error", () => {}));
    pools.set(key, { login, pool });
    return pool;
  };

  const closeWhere = async (isMeant: (login: Login) => boolean) => {
    const meant = [...pools].filter(([, { login }]) => isMeant(login));
    for (const [key] of meant) pools.delete(key);
    await Promise.all(meant.map(([, { pool }]) => pool.end()));
  };

  return {
    async withClient(login, work) {
      const client = await poolOf(login).connect();
      busy.add(client);
      let isBroken = false;
      try {
        return await work(client);
      } catch (error) {
        // After a FATAL error Postgres closes the connection, a moment later.
        isBroken = !(error instanceof pg.DatabaseError && error.severity === "ERROR");
        throw error;
      } finally {
        busy.delete(client);
        client.release(isBroken || client.getTransactionStatus() !== "I");
      }
    },
    closeDatabase: (name) => closeWhere(({ database }) => database === name),
    async close() {
      // A pool's end waits for the queries that still run; ending the client breaks them off.
      for (const client of busy) void (client as unknown as pg.Client).end();
      await closeWhere(() => true);
    },
  };
}
