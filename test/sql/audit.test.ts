// The audit: every admin operation writes an entry with the state before and after, and no entry ever changes.
import { beforeEach, describe, expect, test } from "vitest";
import { listAudit, pause, replay, resume } from "../../src/core/sql/index.ts";
import { newestAudit } from "../support/audit.ts";
import { inSession, sqlState } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { only, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

describe("an audit entry", () => {
  test.each([{ queue: "default" }, { type: "echo" }])(
    "is written by a pause and a resume of %o",
    async (target) => {
      const name = Object.entries(target).flat().join(" ");
      expect(await db.run(pause("ann", target))).toBe(true);
      expect(await newestAudit(db)).toMatchObject({
        actor: "ann",
        action: "pause",
        target: name,
        before: { paused: false },
        after: { paused: true },
      });
      expect(await db.run(resume("bob", target))).toBe(true);
      expect(await newestAudit(db)).toMatchObject({
        actor: "bob",
        action: "resume",
        target: name,
        before: { paused: true },
        after: { paused: false },
      });
    },
  );

  test("is written by a pause that changes nothing, and says so", async () => {
    await db.run(pause("ann", { type: "echo" }));
    expect(await db.run(pause("bob", { type: "echo" }))).toBe(false);
    expect(await newestAudit(db)).toMatchObject({ actor: "bob", before: { paused: true } });
  });

  test("has the database's time", async () => {
    await db.run(pause("ann", { type: "echo" }));
    const { at } = await newestAudit(db);
    const row = only(
      await queue.query<{ late: number }>(
        "select extract(epoch from now() - $1::timestamptz)::float8 as late",
        [at],
      ),
    );
    expect(row.late).toBeGreaterThanOrEqual(-0.001);
    expect(row.late).toBeLessThan(10);
  });

  test("and its operation are committed together or not at all", async () => {
    const before = await queue.count("audit");
    await inSession(db.pool, async (client) => {
      await client.query("begin");
      await client.query("select sluice.pause('ann', 'type', 'echo')");
      await client.query("rollback");
    });
    expect([await queue.count("audit"), await queue.count("pause")]).toEqual([before, 0]);
    const id = await queue.buryOne();
    await queue.query(
      "alter table sluice.audit add constraint full_disk check (actor <> 'nobody') not valid",
    );
    expect(await sqlState(db.run(replay("nobody", { id })))).toBe("23514");
    expect(await sqlState(db.run(pause("nobody", { type: "echo" })))).toBe("23514");
    await queue.query("alter table sluice.audit drop constraint full_disk");
    expect(await queue.find(id)).toMatchObject({ status: "dead" });
    expect(await queue.count("pause")).toBe(0);
  });
});

describe("an audit entry cannot be changed or removed", () => {
  test.each([
    "update sluice.audit set actor = 'another'",
    "update sluice.audit set actor = 'another' where false",
    "delete from sluice.audit",
    "truncate sluice.audit",
    "truncate sluice.pause, sluice.audit",
    `merge into sluice.audit using (select 1) as one on true when matched then delete`,
    `insert into sluice.audit (id, actor, action, target) overriding system value
     select id, 'another', 'pause', 'type echo' from sluice.audit
     on conflict (id) do update set actor = excluded.actor`,
  ])("by its owner: %s", async (text) => {
    await db.run(pause("ann", { type: "echo" }));
    const entries = await db.run(listAudit({ limit: 1000 }));
    expect(await sqlState(queue.query(text))).toBe("42501");
    expect(await db.run(listAudit({ limit: 1000 }))).toEqual(entries);
  });

  test("by a session with session_replication_role = replica, which skips ordinary triggers", async () => {
    await inSession(db.pool, async (client) => {
      await client.query("set session_replication_role = replica");
      for (const text of [
        "update sluice.audit set actor = ''",
        "delete from sluice.audit",
        "truncate sluice.audit",
      ])
        expect(await sqlState(client.query(text))).toBe("42501");
    });
  });
});

test("the audit is read newest first, in pages without gaps", async () => {
  for (const n of times(7, (index) => index)) await db.run(pause(`actor ${n}`, { type: "echo" }));
  const first = await db.run(listAudit({ limit: 3 }));
  const second = await db.run(listAudit({ before: first.at(-1)?.id, limit: 3 }));
  expect([...first, ...second].map((entry) => entry.actor)).toEqual(
    [6, 5, 4, 3, 2, 1].map((n) => `actor ${n}`),
  );
});
