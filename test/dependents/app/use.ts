// Every entry point, used rightly: this file must compile.
import { neon } from "@neondatabase/serverless";
import { drizzle } from "drizzle-orm/node-postgres";
import { FatalError, type HandlerContext, SluiceError, sluice } from "sluice";
import { createClient, SluiceRequestError } from "sluice/client";
import { createPuller } from "sluice/puller";
import { enqueue, enqueueFlow, enqueueMany, enqueueQuery } from "sluice/sql";
import { createTestQueue, runJob } from "sluice/test";
import { half, jobs, length, nightly, welcome, welcomeJob } from "./jobs.ts";

export default sluice({ jobs, schedules: [nightly] });
const at = { url: "https://sluice.example", key: "sk" };
export const client = createClient<typeof jobs>(at);
export const db = drizzle("postgres://a:b@localhost/c");

export async function use(context: HandlerContext): Promise<unknown> {
  await db.transaction(async (tx) => {
    await enqueue(tx, welcome, { name: "a" });
    await enqueue(tx, length, { id: "ab" });
    await enqueueMany(tx, half, [{ n: 2 }]);
    await enqueueFlow(tx, (flow) => flow.add(welcome, { name: "a" }));
  });
  const sql = neon("postgres://a:b@localhost/c");
  await sql.transaction([sql`select 1`, enqueueQuery(sql, welcome, { name: "a" })]);
  const ended = await client.wait(await client.enqueue("welcome", { name: "a" }));
  const text: string | undefined = ended.output?.text;
  const number: number | null = (await client.wait(await client.enqueue(length, { id: "ab" }))).output;
  const queue = await createTestQueue({ jobs });
  await enqueue(queue, half, { n: 4 });
  const outcome = await runJob(welcomeJob, { name: "a" }, { env: { GREETING: context.env.GREETING } });
  const greeting: string = outcome.status === "completed" ? outcome.output.text : "";
  createPuller({ ...at, handlers: { pulled: ({ id }: { id: string }) => id } });
  createPuller<{ welcome: typeof welcome }>({ ...at, handlers: { welcome: ({ name }) => ({ text: name }) } });
  return [text, number, greeting, FatalError, SluiceError, SluiceRequestError];
}
