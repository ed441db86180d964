// `sluice dev --demo`: a Worker of its own with the jobs of a small web shop, and a queue that looks as if it had been used. All
// jobs are enqueued through the API and run for real. Only the charts of the day before are made up.
import { writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { demoRequests, type NewJob, nextJobs } from "./demo-jobs.ts";

const everyMs = 2_000;

/** One type has so many dead letters that its alarm fires. */
export const demoSettings = {
  SLUICE_ENVIRONMENT: "demo",
  SLUICE_ALARM_RULES: JSON.stringify({ dead_letters: { above: 8 } }),
};

/** Writes wrangler's settings of the demo's Worker, and returns their path. */
export function writeDemoConfig(directory: string): string {
  const extension = extname(import.meta.url); // .js in the package
  const config = {
    name: "sluice-demo",
    main: fileURLToPath(new URL(`../demo/worker${extension}`, import.meta.url)),
    compatibility_date: "2026-09-01",
    compatibility_flags: ["enable_request_signal"],
    triggers: { crons: ["* * * * *", "*/2 * * * *", "1-59/2 * * * *"] },
    services: [{ binding: "SELF", service: "sluice-demo" }],
    durable_objects: { bindings: [{ name: "CLOCK", class_name: "SluiceClock" }] },
    migrations: [{ tag: "v1", new_sqlite_classes: ["SluiceClock"] }],
  };
  const path = join(directory, "wrangler.json");
  writeFileSync(path, JSON.stringify(config));
  return path;
}

export interface DemoStack {
  url: string;
  adminKey: string;
  databaseUrl: string;
  schema: string;
}

/** Fills the queue. Until `stop` is called, new jobs arrive all the time. */
export async function startDemo(stack: DemoStack): Promise<{ stop(): void }> {
  for (const [path, body] of demoRequests()) await post(stack, path, body);
  await writeHistory(stack);
  const enqueue = (jobs: readonly NewJob[]) => post(stack, "/v1/jobs/batch", { jobs });
  // Somebody may stop the Worker or edit it meanwhile: the next ones arrive again.
  const timer = setInterval(() => enqueue(nextJobs()).catch(() => {}), everyMs);
  return { stop: () => clearInterval(timer) };
}

async function post({ url, adminKey }: DemoStack, path: string, body: object): Promise<void> {
  const headers = { authorization: `Bearer ${adminKey}`, "content-type": "application/json" };
  const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`the demo: POST ${path}: ${response.status} ${await response.text()}`);
}

/** The day before the start, for the charts: about so many jobs a minute, more and fewer in waves. */
async function writeHistory({ databaseUrl, schema }: DemoStack): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(`set search_path to ${client.escapeIdentifier(schema)}`);
    await client.query("update migration set applied_at = applied_at - interval '1 day'");
    await client.query(`
      with usual(type, jobs) as (values ('send_receipt', 34), ('resize_image', 14), ('charge_card', 9)),
      known as (
        select min(lane) as lane, jobs, date_trunc('minute', now()) as minute
        from lane join usual using (type) group by type, jobs
      ),
      level as ( -- n minutes ago; 0 at the start, as it is then
        select *, minute - n * interval '1 minute' as at, round(jobs * 0.8 * sin((n - 1) / 17.0) ^ 2) as due,
               round(jobs * (1 + 0.3 * sin(n / 13.0 + lane) + 0.15 * sin(n * 2.3 + lane))) as enqueued,
               (n % 11 = lane % 11)::int as died
        from known, generate_series(1, 1440) as n
      ),
      change as (
        select *, due - lead(due, 1, 0) over (partition by lane order by n) as due_change from level
      )
      select add_to_history(array_agg(row(1, at, lane, enqueued, due_change, greatest(enqueued - due_change - died, 0),
                                          3 * died + n % 3, 2 * died + n % 3, died)::history))
      from change`);
  } finally {
    await client.end();
  }
}
