// Starts the deployment of the fault tests on a test file's database. SQL moves its time forward.
import { inject } from "vitest";
import type { TestDatabase } from "./test-database.ts";
import { startWorkerd, type Workerd } from "./workerd.ts";

export const crons = { drain: "* * * * *", reap: "*/2 * * * *" };

export function startFaultDeployment(db: TestDatabase): Promise<Workerd> {
  return startWorkerd({
    worker: new URL("fault-worker.ts", import.meta.url).pathname,
    bindings: {
      DATABASE_URL: db.url,
      SLUICE_NEON_ENDPOINT: inject("neonEndpoint"),
      SLUICE_ADMIN_KEY: "sk_the_key_of_the_fault_tests",
    },
  });
}

/** Makes retries due, which would wait for half a minute or more. */
export async function bringForward(db: TestDatabase): Promise<void> {
  await db.pool.query("update sluice.scheduled set run_at = now() where run_at > now()");
  await db.pool.query("select sluice.reset_cursors()");
}
