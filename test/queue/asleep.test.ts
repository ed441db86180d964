// Simulated days of a deployment whose database may sleep, counted at the proxy in front of Postgres.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type SimulatedDeployment, startSimulated } from "../support/simulated-deployment.ts";
import { useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const adminKey = "sk_the_key_of_the_simulation";
const headers = { authorization: `Bearer ${adminKey}`, "content-type": "application/json" };
let deployment: SimulatedDeployment;
let watchdog: Server;
const pings: string[] = [];

beforeAll(async () => {
  watchdog = createServer(({ url = "" }, response) => {
    pings.push(url.replace(/\?.*/, ""));
    response.end();
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => watchdog.once("listening", resolve));
  deployment = await startSimulated({
    databaseUrl: db.url,
    settings: {
      SLUICE_ADMIN_KEY: adminKey,
      SLUICE_MAX_SLEEP_MINUTES: "240",
      SLUICE_ALLOW_PRIVATE_TARGETS: "true",
      SLUICE_HEARTBEAT_URL: `http://127.0.0.1:${(watchdog.address() as AddressInfo).port}/ping`,
    },
  });
}, 60_000);
afterAll(async () => {
  await deployment?.stop();
  watchdog?.close();
});

const get = (path: string, more: Record<string, string> = {}) =>
  deployment.fetch(path, { headers: { ...headers, ...more } });

/** The cookie of a browser tab. */
async function signIn(): Promise<string> {
  const response = await deployment.fetch("/sign-in", {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin" },
    body: new URLSearchParams({ key: adminKey }),
  });
  expect(response.status).toBe(303);
  return response.headers
    .getSetCookie()
    .map((cookie) => cookie.replace(/;.*/, ""))
    .join("; ");
}

test("an idle deployment that is watched touches the database in under 5 % of the five minutes of two days", async () => {
  const days = 2;
  const seen = { health: new Set<unknown>(), metrics: new Set<number>(), tab: new Set<number>() };
  let cookie = "";
  let minutes = 0;
  const { requests, shareOfWindows } = await deployment.pass(days * 1440, async () => {
    if (minutes % 360 === 0) cookie = await signIn(); // a session ends after some hours
    if (minutes++ % 5 > 0) return;
    const [health, metrics, tab] = await Promise.all([
      get("/health"),
      get("/metrics"),
      get("/", { cookie, "hx-request": "true", accept: "text/html" }), // a tab of the dashboard that is left open
    ]);
    seen.health.add(health.status);
    seen.metrics.add(metrics.status);
    seen.tab.add(tab.status);
    await Promise.all([health.text(), metrics.text(), tab.text()]);
  });
  process.stdout.write(
    `${days} idle days: ${requests} statements, ${(100 * shareOfWindows).toFixed(1)} % of the windows\n`,
  );
  expect(shareOfWindows).toBeLessThan(0.05);
  expect(shareOfWindows).toBeGreaterThan(0.01);
  expect([[...seen.health], [...seen.metrics]]).toEqual([[200], [200]]);
  expect(seen.tab).toContain(204);
  // Two rounds a minute, each with a ping at its start and its end.
  expect(pings).toHaveLength(days * 1440 * 4);
  expect(pings.filter((path) => path.endsWith("/fail"))).toEqual([]);
  const { rows } = await db.pool.query("select alarm from sluice.alarm where phase = 'firing'");
  expect(rows).toEqual([]);
}, 240_000);
