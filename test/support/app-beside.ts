// An app that reads its own table through a pooler while something else uses the same server connections.
import pg from "pg";

export interface AppBeside {
  /** The reads that succeeded, and each different error. */
  stop(): Promise<{ reads: number; errors: string[] }>;
}

const clients = 4;

/** Needs a table `account` on the database's own search_path. */
export function startAppBeside(url: string): AppBeside {
  const errors = new Set<string>();
  let reads = 0;
  let isOver = false;
  const read = async () => {
    const client = await connectTo(url);
    while (!isOver) {
      await client.query("select count(*) from account").then(
        () => reads++,
        (error: Error) => errors.add(error.message),
      );
    }
    await client.end();
  };
  const running = Array.from({ length: clients }, read);
  return {
    async stop() {
      isOver = true;
      await Promise.all(running);
      return { reads, errors: [...errors] };
    },
  };
}

export async function connectTo(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}
