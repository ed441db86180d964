// The Worker's settings: defaults are filled in, and invalid settings are named in one error.
import { expect, test } from "vitest";
import { alarmRules } from "../../src/core/alarms/alarm-defaults.ts";
import { SluiceError } from "../../src/core/errors.ts";
import { parseSettings, settingsFor } from "../../src/edge/settings/env.ts";

const good = { DATABASE_URL: "postgresql://u:p@db.example.com/app", SLUICE_ADMIN_KEY: "sk_0123456789abcdef" };

async function messageOf(env: object): Promise<string> {
  try {
    await parseSettings(env);
    return "";
  } catch (error) {
    expect(error).toBeInstanceOf(SluiceError);
    return (error as SluiceError).message;
  }
}

test("the two required settings are enough", async () => {
  expect(await parseSettings(good)).toEqual({
    databaseUrl: good.DATABASE_URL,
    hyperdriveUrl: undefined,
    databaseAddress: { host: "db.example.com", hostname: "db.example.com", pathname: "/app" },
    adminKeys: [good.SLUICE_ADMIN_KEY],
    schema: "sluice",
    neonEndpoint: undefined,
    plan: "paid",
    maxDrains: 4,
    maxDepth: 100_000,
    logJobs: false,
    allowPrivateTargets: false,
    alarmTargets: [],
    alarmRules: alarmRules(),
    heartbeatUrls: {},
    deployment: { name: expect.any(String), publicUrl: undefined, runbookUrl: undefined },
    self: undefined,
    rateLimiter: undefined,
    clock: undefined,
    maxSleepMinutes: 0,
  });
});

test("the deployment's name is its environment, else its public host, else its database", async () => {
  const nameOf = async (env: object) => (await parseSettings({ ...good, ...env })).deployment.name;
  const publicUrl = { SLUICE_PUBLIC_URL: "https://jobs.example:8443/x" };
  expect(await nameOf({ ...publicUrl, SLUICE_ENVIRONMENT: "production" })).toBe("production");
  expect(await nameOf(publicUrl)).toBe("jobs.example:8443");
  expect(await nameOf({ DATABASE_URL: "postgresql://u:secret@db.example/app" })).toBe(
    "db.example/app/sluice",
  );
});

test("with a Hyperdrive binding no DATABASE_URL is needed, and its changing host is in no name", async () => {
  const { DATABASE_URL: _, ...rest } = good;
  const HYPERDRIVE = { connectionString: "postgresql://u:p@1f2e.hyperdrive.local:5432/app?sslmode=disable" };
  expect(await parseSettings({ ...rest, HYPERDRIVE })).toMatchObject({
    databaseUrl: undefined,
    hyperdriveUrl: HYPERDRIVE.connectionString,
    databaseAddress: { host: "hyperdrive", pathname: "/app" },
    deployment: { name: "hyperdrive/app/sluice" },
  });
  expect(await messageOf({ ...rest, HYPERDRIVE: "postgresql://…" })).toContain(
    "HYPERDRIVE must be a Hyperdrive binding",
  );
});

test("every missing setting is named in one message", async () => {
  expect(await messageOf({})).toBe("invalid settings: DATABASE_URL is not set; SLUICE_ADMIN_KEY is not set");
});

test.each([
  [{ DATABASE_URL: "mysql://u:p@h/d" }, "DATABASE_URL must be a postgresql:// connection string"],
  [{ SLUICE_ADMIN_KEY: "short" }, "SLUICE_ADMIN_KEY must have at least 16 characters"],
  [{ SLUICE_ADMIN_KEY_PREVIOUS: "short" }, "SLUICE_ADMIN_KEY_PREVIOUS must have at least 16 characters"],
  [
    { SLUICE_SCHEMA: "no; drop" },
    "SLUICE_SCHEMA must be a lower case name of letters, digits and _, with at most 63 characters and no digit first",
  ],
  [{ SLUICE_PLAN: "gold" }, 'SLUICE_PLAN must be "free" or "paid"'],
  [{ SLUICE_MAX_DRAINS: "0" }, "SLUICE_MAX_DRAINS must be at least 1"],
  [{ SLUICE_MAX_DRAINS: "many" }, "SLUICE_MAX_DRAINS must be a number"],
  [{ SLUICE_NEON_ENDPOINT: "nowhere" }, "SLUICE_NEON_ENDPOINT must be a URL"],
  [{ SELF: "sluice" }, "SELF must be a service binding"],
  [{ RATE_LIMITER: {} }, "RATE_LIMITER must be a rate limit binding"],
  [{ SLUICE_ALLOW_PRIVATE_TARGETS: "yes" }, 'SLUICE_ALLOW_PRIVATE_TARGETS must be "true" or "false"'],
])("an invalid setting is named with its fault: %o", async (bad, message) => {
  expect(await messageOf({ ...good, ...bad })).toBe(`invalid settings: ${message}`);
});

test("the value of an invalid setting is not in the message", async () => {
  expect(await messageOf({ ...good, DATABASE_URL: "secret-value" })).not.toContain("secret-value");
});

test("settings are parsed once for each environment", async () => {
  const env = { ...good };
  expect(await settingsFor(env)).toBe(await settingsFor(env));
});
