// Connections with `pg`, the same driver and version for every system.
import pg from "pg";

export function openPool(url: string, max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max, idleTimeoutMillis: 0 });
  // A pool's end does not wait for its sockets, and the database is dropped right after it.
  pool.on("error", () => {});
  pool.on("connect", (client) => void client.on("error", () => {}));
  return pool;
}

export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  return client;
}

export function connectAll(url: string, connections: number): Promise<pg.Client[]> {
  return Promise.all(Array.from({ length: connections }, () => connect(url)));
}

/** The process that serves this connection. */
export async function pidOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query("select pg_backend_pid() as pid");
  return rows[0].pid;
}
