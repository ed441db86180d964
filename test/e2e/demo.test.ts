// `npm run dev -- --demo`: a queue that has something of everything, and a Worker that needs nothing of the folder.
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, expect, it } from "vitest";
import { freePort } from "../../src/local/ports.ts";
import { endAllRuns, startDev, until } from "./dev-run.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "sluice demo "));
  chmodSync(directory, 0o755);
});
afterEach(async () => {
  await endAllRuns();
  rmSync(directory, { recursive: true, force: true });
});

it("has jobs in every state, several kinds of dead letters, a paused type, flows and charts", async () => {
  const run = startDev(["--demo", "--port", String(await freePort())], { directory });
  const stack = await run.ready();
  const client = new pg.Client({ connectionString: stack.database_url });
  await client.connect();
  const count = async (sql: string) => Number((await client.query(`select count(*) ${sql}`)).rows[0].count);
  try {
    await until("jobs are in most states", async () => {
      const { rows } = await client.query("select distinct status from sluice.jobs");
      return ["pending", "blocked", "completed", "dead"].every((status) =>
        rows.some((row) => row.status === status),
      );
    });
    await until(
      "jobs are dead for several reasons",
      async () =>
        (await count(
          "from (select distinct fingerprint from sluice.closed where status = 'dead') as kinds",
        )) > 3,
    );
    const before = await count("from sluice.job");
    await until("more jobs arrive", async () => (await count("from sluice.job")) > before);
    expect(await count("from sluice.history where minutes = 30")).toBeGreaterThan(40);
    expect(await count("from sluice.flow")).toBe(3);
    const headers = { authorization: `Bearer ${stack.admin_key}` };
    const { job_types } = (await (await fetch(`${stack.url}/v1/admin/job-types`, { headers })).json()) as {
      job_types: { type: string; paused_since: string | null }[];
    };
    expect(job_types.find(({ type }) => type === "sync_customer")).toMatchObject({ paused: true });
  } finally {
    await client.end();
  }
});
