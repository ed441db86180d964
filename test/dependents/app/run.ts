// Runs the whole way in Node: enqueue in a drizzle transaction and over HTTP, drain, read the outputs.

import { sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import pg from "pg";
import { sluice } from "sluice";
import { createClient } from "sluice/client";
import { enqueue } from "sluice/sql";
import { half, jobs, length, welcome } from "./jobs.ts";

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
const db = drizzle(pool);
const worker = sluice({ jobs });
const left: Promise<unknown>[] = [];
const context = { waitUntil: (work: Promise<unknown>) => void left.push(work) };
const client = createClient<typeof jobs>({
  url: "https://sluice.example",
  key: process.env.SLUICE_ADMIN_KEY ?? "",
  fetch: (url, init) => worker.fetch(new Request(url, init), process.env, context),
});

const rolledBack = await db
  .transaction(async (tx) => {
    await enqueue(tx, welcome, { name: "nobody" });
    throw new Error("rolled back");
  })
  .catch((error: Error) => error.message);
const ids = await db.transaction(async (tx) => [
  await enqueue(tx, welcome, { name: "sql", times: 2 }),
  await enqueue(tx, length, { id: "abc" }),
]);
ids.push(await client.enqueue(half, { n: 8 }), await client.enqueue("welcome", { name: "http" }));
const refused = await client.enqueue(half, { n: 1.5 }).catch((error: Error) => error.message);
const ended = await Promise.all(ids.map((id) => client.wait(id, { intervalMs: 20 })));
const { rows } = await db.execute(sql`select count(*)::int as jobs from sluice.jobs`);
await Promise.all(left);
await pool.end();
console.log(JSON.stringify({ rolledBack, refused, outputs: ended.map(({ output }) => output), ...rows[0] }));
