// The Worker's role owns nothing, in a database whose owner is no superuser, as on Neon. Under it the audit is append-only.
// test/worker and contract.test.ts show that the whole Worker runs under such a role.
import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { migrate } from "../../src/cli/migrate.ts";
import { addPartitions, dropOldestDay, listAudit, pause } from "../../src/core/sql/index.ts";
import { addPastDay } from "../support/old-jobs.ts";
import { sqlState } from "../support/sessions.ts";
import { createPgDatabase, type TestDatabase } from "../support/test-database.ts";
import { verbsOf } from "../support/verbs.ts";
import { wholeLife } from "../support/whole-life.ts";

const suffix = randomBytes(6).toString("hex");
const [owner, worker, database] = [`owner_${suffix}`, `worker_${suffix}`, `roles_${suffix}`];
const urlOf = (role: string) =>
  inject("adminDatabaseUrl")
    .replace("sluice:sluice@", `${role}@`)
    .replace(/[^/]+$/, database);
const admin = new pg.Client({ connectionString: inject("adminDatabaseUrl") });
const asOwner = databaseOf(urlOf(owner));
const asWorker = databaseOf(urlOf(worker));

beforeAll(async () => {
  await admin.connect();
  await admin.query(`create role ${owner} login`);
  await admin.query(`create role ${worker} login`);
  await admin.query(`create database ${database} owner ${owner}`);
  await migrate({ databaseUrl: urlOf(owner) });
  await asOwner.pool.query("select sluice.grant_worker($1)", [worker]);
});
afterAll(async () => {
  await asOwner.pool.end();
  await asWorker.pool.end();
  await admin.query(`drop database ${database} with (force)`);
  await admin.query(`drop role ${worker}`);
  await admin.query(`drop role ${owner}`);
  await admin.end();
});

describe("under the Worker's role", () => {
  test("jobs pass through every state", () => wholeLife(asWorker));

  test("days are added and dropped", async () => {
    const day = await addPastDay(verbsOf(asOwner), 9);
    expect(await asWorker.run(dropOldestDay())).toEqual(day);
    const { rows } = await asOwner.pool.query(
      "select sluice.partition_name('job', (now() at time zone 'utc')::date + 7) as name",
    );
    await asOwner.pool.query(
      `drop table sluice.${rows[0].name}, sluice.${rows[0].name.replace("job", "done")}`,
    );
    expect(await asWorker.run(addPartitions())).toBe(1);
  });

  test.each([
    "insert into sluice.audit (actor, action, target) values ('another', 'pause', 'type echo')",
    "insert into sluice.audit (at, actor, action, target) values ('2020-01-01', 'another', 'pause', 'type echo')",
    "update sluice.audit set actor = 'another'",
    "delete from sluice.audit",
    "truncate sluice.audit",
    "drop table sluice.audit",
    "alter table sluice.audit disable trigger audit_is_append_only",
    "drop trigger audit_is_append_only on sluice.audit",
    "create trigger mine before insert on sluice.audit for each row execute function sluice.refuse_change()",
    "select sluice.write_audit('another', 'pause', 'type echo', null, null)",
    "set session_replication_role = replica",
    "create or replace function sluice.refuse_change() returns trigger language plpgsql as 'begin return null; end'",
    "alter function sluice.pause security invoker",
    "insert into sluice.pause (kind, name) values ('type', 'echo')",
    "delete from sluice.pause",
    "update sluice.api_key set role = 'admin'",
    "select key_hash from sluice.api_key",
    "select * from sluice.api_key",
    "select id from sluice.api_key where key_hash is not null",
    "select sluice.grant_worker('public')",
    `set role ${owner}`,
  ])("the audit cannot be bypassed: %s", async (text) => {
    await asWorker.run(pause("ann", { type: "echo" }));
    const entries = await asWorker.run(listAudit({ limit: 1000 }));
    expect(await sqlState(asWorker.pool.query(text))).toBe("42501");
    expect(await asWorker.run(listAudit({ limit: 1000 }))).toEqual(entries);
  });
});

describe("a migration", () => {
  test("sets the role's rights to exactly those of this version", async () => {
    const rights = await rightsOf(worker);
    await asOwner.pool.query(`revoke execute on function sluice.claim from ${worker}`);
    await asOwner.pool.query(`grant execute on function sluice.write_audit to ${worker}`);
    await asOwner.pool.query(`grant insert on sluice.audit to ${worker}`);
    await asOwner.pool.query(
      "update sluice.migration set checksum = 'of old' where name = 'functions/pause.sql'",
    );
    await migrate({ databaseUrl: urlOf(owner) });
    expect(await rightsOf(worker)).toEqual(rights);
  });

  test("ignores a role that no longer exists", async () => {
    await asOwner.pool.query("insert into sluice.worker_role values ('nobody_of_that_name')");
    await asOwner.pool.query("select sluice.renew_worker_rights()");
  });
});

test.each([
  ["owns the tables", () => owner],
  ["is a superuser", () => "sluice"],
  ["may write every table", () => "pg_write_all_data"],
])("grant_worker refuses a role that %s", async (_, role) => {
  expect(await sqlState(asOwner.pool.query("select sluice.grant_worker($1)", [role()]))).toBe("0LP01");
});

function databaseOf(url: string): TestDatabase {
  const pool = new pg.Pool({ connectionString: url });
  pool.on("error", () => {});
  return { ...createPgDatabase(pool), pool, url };
}

async function rightsOf(role: string): Promise<string[]> {
  const { rows } = await asOwner.pool.query<{ name: string }>(
    `select oid::regprocedure::text as name from pg_proc
     where pronamespace = 'sluice'::regnamespace and has_function_privilege($1, oid, 'execute')
     union all
     select relname || ' ' || privilege from pg_class
     cross join unnest(array['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger']) as privilege
     where relnamespace = 'sluice'::regnamespace and relkind in ('r', 'p', 'v')
       and has_table_privilege($1, oid, privilege)
     order by 1`,
    [role],
  );
  return rows.map((row) => row.name);
}
