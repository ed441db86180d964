// A Worker that has a Hyperdrive binding and no DATABASE_URL, in workerd: it reaches Postgres with `pg` and not by HTTP.
import { afterEach, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { defineJob } from "../../src/index.ts";
import { crons, useDeployment } from "./deployment.ts";

const echo = defineJob("echo", {
  payload: z.record(z.string(), z.json()),
  timeoutSeconds: 10,
  run: (payload) => payload,
});
const hyperdriveTo = (connectionString: string) => ({
  HYPERDRIVE: { connectionString },
  DATABASE_URL: undefined,
  SLUICE_NEON_ENDPOINT: undefined,
});
const { call, enqueue, fire, look, query, quiet } = useDeployment([echo], hyperdriveTo);

/** The Worker's own connections. The test uses another role. */
const sessions = async () =>
  (
    await query(
      "select pid from pg_stat_activity where usename = 'sluice_worker' and datname = current_database()",
    )
  ).length;

afterEach(() => vi.restoreAllMocks());

describe("with a Hyperdrive binding", () => {
  test("an enqueue starts its job at once, and no connection is left when the work has ended", async () => {
    const fetching = vi.spyOn(globalThis, "fetch");
    const payload = { text: 'it\'s "ä€😀"', list: [1, null, { deep: true }] };
    const id = await enqueue({ type: "echo", payload });
    await quiet();
    expect(fetching).not.toHaveBeenCalled();
    expect(await look(id)).toMatchObject({ status: "completed", payload, output: payload });
    await quiet();
    await expect.poll(sessions).toBe(0);
  });

  test("requests and rounds follow each other in one isolate, also many at once", async () => {
    for (const cron of Object.values(crons)) await fire(cron);
    const ids = await Promise.all(
      Array.from({ length: 20 }, (_, n) => enqueue({ type: "echo", payload: { n } })),
    );
    await fire();
    for (const id of ids) expect(await look(id)).toMatchObject({ status: "completed" });
    const health = await call("/health", { headers: {} });
    expect(health.status).toBe(200);
    expect(await health.json()).toMatchObject({ status: "ok", checks: { database: "ok", drain: "ok" } });
    await quiet();
    await expect.poll(sessions).toBe(0);
  });

  test("a job that was refused by the database says why, and the next call works", async () => {
    const body = (n: number) => JSON.stringify({ type: "echo", payload: { n }, idempotency_key: "k" });
    expect((await call("/v1/jobs", { method: "POST", body: body(1) })).status).toBe(201);
    const other = await call("/v1/jobs", { method: "POST", body: body(2) });
    expect(other.status).toBe(422);
    expect((await call("/v1/jobs", { method: "POST", body: body(1) })).status).toBe(200);
  });

  test("a database out of reach is a 503 with Retry-After, soon", async () => {
    vi.spyOn(console, "error").mockImplementation(() => {});
    const settings = hyperdriveTo("postgresql://u:p@127.0.0.1:9/none?sslmode=disable");
    const startedMs = Date.now();
    const response = await call("/v1/jobs", { method: "POST", body: '{"type":"echo"}' }, settings);
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ type: "urn:sluice:problem:database_unavailable" });
    expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(Date.now() - startedMs).toBeLessThan(4000);
  });
});
