// A database that answers but cannot do the work. The caller gets a 503 that says why, the Worker retries once where
// that helps, and /health is a 503 meanwhile. Real Postgres raises the errors.
import { neon, neonConfig } from "@neondatabase/serverless";
import { afterEach, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { problem } from "../../src/contract/problem.ts";
import { schemaVersion } from "../../src/core/schema-version.ts";
import { defineJob } from "../../src/index.ts";
import { asOwner } from "../support/worker-role.ts";
import { bindings, crons, useDeployment } from "./deployment.ts";

const deployment = useDeployment([defineJob("note", { payload: z.object({}), run: () => {} })]);
const { call, fire, query } = deployment;

const enqueue = (settings: object = {}) =>
  call("/v1/jobs", { method: "POST", body: JSON.stringify({ type: "note" }) }, settings);

async function health(settings: object = {}) {
  const response = await call("/health", { headers: {} }, settings);
  return { code: response.status, ...((await response.json()) as { checks: Record<string, string> }) };
}

async function refused(response: Response) {
  const { type, detail } = problem.parse(await response.json());
  const retryAfter = Number(response.headers.get("retry-after"));
  return { status: response.status, code: type.split(":").at(-1), detail, retryAfter };
}

/** Makes the next `times` inserts into `job` fail. A sequence counts them, because a rollback does not undo it. */
async function failWith(sqlstate: string, times = 1_000_000) {
  await query("create sequence if not exists public.failures");
  await query("alter sequence public.failures restart");
  await query(`
    create or replace function public.fail() returns trigger language plpgsql as $$
    begin
      if nextval('public.failures') <= ${times} then
        raise exception using errcode = '${sqlstate}', message = 'as asked';
      end if;
      return new;
    end $$`);
  await query(
    "create or replace trigger failing before insert on sluice.job for each statement execute function public.fail()",
  );
}

let hasOtherDefaults = false;

/** Ends the proxy's connections, which still have the old defaults, as a pooler does when it recycles them. */
async function setDefault(setting: string) {
  hasOtherDefaults = setting !== "reset all";
  const name = deployment.databaseUrl.split("/").at(-1);
  await asAdmin(`alter database ${name} ${setting}`);
  await asAdmin(
    `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '${name}' and pid <> pg_backend_pid()`,
  );
  // A connection fails once if the proxy has not noticed its end yet.
  const works = () => Promise.all(Array.from({ length: 20 }, () => query("select 1")));
  await expect.poll(() => works().then(Boolean, () => false)).toBe(true);
}
const asAdmin = (text: string) =>
  neon(asOwner(deployment.databaseUrl).replace(/[^/]+$/, "postgres")).query(text);

afterEach(async () => {
  vi.restoreAllMocks();
  neonConfig.fetchEndpoint = bindings.SLUICE_NEON_ENDPOINT;
  if (hasOtherDefaults) await setDefault("reset all");
  await query("drop trigger if exists failing on sluice.job");
  await fire(crons.reap);
  await enqueue();
});

describe("an enqueue that the database refuses", () => {
  test.each([
    ["53100", "database_full", "disk"],
    ["53200", "database_failing", "memory"],
    ["58030", "database_failing", "disk or its system"],
    ["55P03", "database_busy", "lock_timeout"],
    ["57014", "database_busy", "statement_timeout"],
    ["40P01", "database_busy", "collided"],
    ["42501", "database_unavailable", "right"],
    ["25006", "database_read_only", "standby"],
  ])("with %s is a 503 with Retry-After: %s", async (sqlstate, code, word) => {
    const log = vi.spyOn(console, "error").mockImplementation(() => {});
    await failWith(sqlstate);
    const answer = await refused(await enqueue());
    expect(answer).toMatchObject({ status: 503, code });
    expect(answer.detail).toContain(word);
    expect(answer.retryAfter).toBeGreaterThan(0);
    const [line] = log.mock.calls.map(([text]) => JSON.parse(String(text)));
    expect(line).toMatchObject({
      event: "request failed",
      code,
      statement: "enqueue",
      sqlstate,
      method: "POST",
      route: "/v1/jobs",
    });
    expect(line.cause).toContain("enqueue: as asked");
  });

  test("through a fault of Sluice is a 500; only the log names the statement", async () => {
    const log = vi.spyOn(console, "error").mockImplementation(() => {});
    await failWith("23505");
    const answer = await refused(await enqueue());
    expect(answer).toMatchObject({ status: 500, code: "internal" });
    expect(answer.detail).not.toContain("as asked");
    const [line] = log.mock.calls.map(([text]) => JSON.parse(String(text)));
    expect(line).toMatchObject({ statement: "enqueue", sqlstate: "23505", message: "enqueue: as asked" });
  });

  test.each(["40001", "40P01"])("once with %s is retried at once, and makes one job", async (sqlstate) => {
    await failWith(sqlstate, 1);
    expect((await enqueue()).status).toBe(201);
    expect(await query("select count(*)::int as jobs from sluice.job")).toEqual([{ jobs: 1 }]);
  });

  test.each([
    ["53100", "full"],
    ["58030", "failing"],
  ])("with %s makes /health a 503 until an enqueue succeeds", async (sqlstate, word) => {
    await failWith(sqlstate);
    expect((await health()).checks.database).toBe("ok");
    await enqueue();
    expect(await health()).toMatchObject({ code: 503, status: "unavailable", checks: { database: word } });
    await query("drop trigger failing on sluice.job");
    expect((await enqueue()).status).toBe(201);
    expect((await health()).checks.database).toBe("ok");
  });
});

test("a read-only database is a 503, and /health reports it before the first enqueue", async () => {
  await setDefault("set default_transaction_read_only = on");
  expect(await health()).toMatchObject({ code: 503, checks: { database: "read_only" } });
  expect(await refused(await enqueue())).toMatchObject({ status: 503, code: "database_read_only" });
  const list = await call("/v1/jobs");
  expect(list.status).toBe(200);
});

describe("Sluice works with these defaults of the role or the database", () => {
  const whole = async () => {
    const id = await deployment.enqueue({ type: "note", scheduled_at: new Date().toISOString() });
    await deployment.quiet();
    for (const cron of Object.values(crons)) await fire(cron);
    const job = await deployment.look(id);
    expect(job).toMatchObject({ status: "completed" });
    expect(Math.abs(Date.parse(job.created_at) - Date.now())).toBeLessThan(30_000);
    const { checks } = await health();
    expect(checks).toMatchObject({ database: "ok", drain: "ok", reap: "ok", watch: "ok" });
    for (const path of ["/metrics", "/v1/stats", "/v1/admin/alarms", "/v1/admin/keys", "/v1/admin/audit"])
      expect((await call(path)).status).toBe(200);
  };

  test.each([
    "set datestyle = 'SQL, DMY'",
    "set datestyle = 'German'",
    "set intervalstyle = 'sql_standard'",
    "set timezone = 'Asia/Kathmandu'",
    "set bytea_output = 'escape'",
  ])("%s", async (setting) => {
    await setDefault(setting);
    await whole();
  });

  test.each(["repeatable read", "serializable"])("the isolation level %s", async (level) => {
    await setDefault(`set default_transaction_isolation = '${level}'`);
    const [before] = await query<{ id: string }>("select max(id) as id from sluice.cursors");
    await whole();
    const statuses = await Promise.all(Array.from({ length: 30 }, async () => (await enqueue()).status));
    expect(new Set(statuses)).toEqual(new Set([201]));
    await deployment.quiet();
    const [after] = await query<{ id: string }>("select max(id) as id from sluice.cursors");
    expect(Number(after?.id)).toBeGreaterThan(Number(before?.id ?? 0));
  });
});

describe("a database that Sluice cannot use", () => {
  const elsewhere = { DATABASE_URL: deployment.databaseUrl.replace(/[^/]+$/, "postgres") };

  test("is a 503 that names the command if it is not migrated, in /health too", async () => {
    expect(await refused(await enqueue(elsewhere))).toMatchObject({
      status: 503,
      code: "schema_outdated",
      detail: expect.stringContaining("npx sluice migrate"),
    });
    expect(await health(elsewhere)).toMatchObject({ code: 503, checks: { database: "schema_outdated" } });
  });

  describe("because its schema is too old", () => {
    const words = `Sluice's schema has version 0 and this Worker needs version ${schemaVersion}: run \`npx sluice migrate\``;
    // Another password, which the local server accepts: to the isolate it is another database, not checked yet.
    const withPassword = (password: string) => ({
      DATABASE_URL: deployment.databaseUrl.replace(/(:[^:/@]*)?@/, `:${password}@`),
    });
    const unseen = withPassword("unseen");
    const setVersion = (version: number) =>
      query(
        `create or replace function sluice.schema_version() returns int language sql immutable return ${version}`,
      );
    afterEach(() => setVersion(schemaVersion));

    test("is a 503 that names the command, in /health and in rounds too; nothing is written", async () => {
      await setVersion(0);
      const log = vi.spyOn(console, "error").mockImplementation(() => {});
      expect(await refused(await enqueue(unseen))).toMatchObject({
        status: 503,
        code: "schema_outdated",
        detail: words,
      });
      expect(await health(unseen)).toMatchObject({ code: 503, checks: { database: "schema_outdated" } });
      for (const cron of Object.values(crons)) {
        log.mockClear();
        const error = await fire(cron, unseen).then(
          () => "none",
          ({ message }: Error) => message,
        );
        expect([error, ...log.mock.calls.flat()].join("\n")).toContain(words);
      }
      expect(await query("select from sluice.job")).toEqual([]);
    });

    test("works in the same isolate after the migration; a newer schema is fine", async () => {
      const settings = withPassword("upgraded");
      await setVersion(0);
      expect((await enqueue(settings)).status).toBe(503);
      await setVersion(2);
      expect((await enqueue(settings)).status).toBe(201);
    });
  });

  test.each(["404", "200"])(
    "is reported as not Neon's if its endpoint answers %s with something else",
    async (status) => {
      const log = vi.spyOn(console, "error").mockImplementation(() => {});
      const settings = { SLUICE_NEON_ENDPOINT: `${bindings.RECEIVER_URL}/answer/${status}` };
      expect(await refused(await enqueue(settings))).toMatchObject({
        status: 503,
        code: "database_not_neon",
      });
      expect(await health(settings)).toMatchObject({ code: 503, checks: { database: "not_neon" } });
      expect(String(log.mock.calls[0]?.[0])).toContain(new URL(bindings.RECEIVER_URL).host);
    },
  );

  test("is reported as not Neon's if it is a plain Postgres; only the log has its host", async () => {
    const log = vi.spyOn(console, "error").mockImplementation(() => {});
    const settings = {
      DATABASE_URL: "postgresql://me:secret@db.plain.invalid/app",
      SLUICE_NEON_ENDPOINT: undefined,
    };
    const { detail, ...answer } = await refused(await enqueue(settings));
    expect(answer).toMatchObject({ status: 503, code: "database_not_neon" });
    expect(detail).not.toContain("plain.invalid");
    const lines = log.mock.calls.map(([text]) => String(text)).join();
    expect(lines).toContain("db.plain.invalid");
    expect(lines).not.toContain("secret");
  });
});

test("an unknown type is a 403 that says so, and does not blame the key", async () => {
  const response = await call("/v1/jobs", { method: "POST", body: JSON.stringify({ type: "nope" }) });
  const answer = problem.parse(await response.json());
  expect(answer).toMatchObject({ status: 403, title: "Unknown job type" });
  expect(answer.type).toBe("urn:sluice:problem:type_unknown");
});
