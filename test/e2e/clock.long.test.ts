// The local stack without any cron, for minutes: what an alarm of the clock starts is an invocation with a budget of minutes, and
// the jobs of a puller that died come back by the clock alone.
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { DevJson } from "../../src/local/dev-directory.ts";
import { freePort } from "../../src/local/ports.ts";
import { endAllRuns, startDev } from "./dev-run.ts";

const directory = mkdtempSync(join(tmpdir(), "sluice-dev-"));
chmodSync(directory, 0o755); // Postgres runs as another user if the tests run as root
afterEach(async () => {
  await endAllRuns();
  rmSync(directory, { recursive: true, force: true });
});

const call = async (stack: DevJson, path: string, body?: object) => {
  const headers = { authorization: `Bearer ${stack.admin_key}`, "content-type": "application/json" };
  const init = body ? { method: "POST", body: JSON.stringify(body) } : {};
  const response = await fetch(`${stack.url}${path}`, { headers, ...init });
  const text = await response.text();
  expect(response.status, text).toBeLessThan(300);
  return JSON.parse(text) as Record<string, unknown> & { job_id: string; jobs: { job_id: string }[] };
};

test("a job of 130 s that an alarm started, is completed, and the job of a puller that died comes back", async () => {
  const run = startDev(["--ephemeral", "--tick-seconds", "0", "--port", String(await freePort())], {
    directory,
  });
  const stack = await run.ready();
  const enqueue = async (job: object) => (await call(stack, "/v1/jobs", job)).job_id;
  const look = (id: string) => call(stack, `/v1/jobs/${id}`);
  const patient = { timeout: 240_000, interval: 1000 };

  const abandoned = await enqueue({ type: "approval" }); // no drain runs this type
  const claim = { worker_id: "w", types: ["approval"], limit: 1, lease_seconds: 60 };
  expect((await call(stack, "/v1/claims", claim)).jobs).toMatchObject([{ job_id: abandoned }]);
  const long = await enqueue({ type: "sleep", payload: { ms: 130_000 }, delay_seconds: 1 });
  await Promise.all([
    expect.poll(() => look(long), patient).toMatchObject({ status: "completed", attempts: 1, errors: [] }),
    expect
      .poll(() => look(abandoned), patient)
      .toMatchObject({ status: "pending", errors: [{ message: "the lease ran out" }] }),
  ]);
});
