import { randomBytes } from "node:crypto";
import pg from "pg";
import { expect, test } from "vitest";
import { migrate } from "../../src/cli/migrate.ts";
import { useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();

test("running it again applies nothing", async () => {
  const lines: string[] = [];
  await migrate({ databaseUrl: db.url, log: (line) => lines.push(line) });
  expect(lines).toEqual([]);
});

test("four runners at once apply each migration once, into a schema of another name", async () => {
  const schema = `s_${randomBytes(4).toString("hex")}`;
  const lines: string[] = [];
  await Promise.all(
    Array.from({ length: 4 }, () =>
      migrate({ databaseUrl: db.url, schema, log: (line) => lines.push(line) }),
    ),
  );
  const { rows } = await db.pool.query(`select name from ${schema}.migration order by name`);
  expect(lines).toEqual(rows.map((row) => `applied ${row.name}`));
  expect(lines.length).toBeGreaterThan(0);
});

test("a database that is not there is a clear error", async () => {
  await expect(migrate({ databaseUrl: `${db.url}_no` })).rejects.toThrow(pg.DatabaseError);
});
