// A connection through Hyperdrive, for one piece of work. Hyperdrive pools the connections to Postgres.
import { drizzle, type NodePgDatabase } from "drizzle-orm/node-postgres";
import pg from "pg";

export async function withDatabase<T>(
  env: Cloudflare.Env,
  work: (db: NodePgDatabase) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString: env.HYPERDRIVE.connectionString });
  await client.connect();
  try {
    return await work(drizzle(client));
  } finally {
    await client.end();
  }
}
