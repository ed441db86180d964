// The contract of the Database port over Neon's HTTP, over a connection, and over a pooler in transaction mode.
import { expect, test } from "vitest";
import { enqueue } from "../../src/core/sql/index.ts";
import { useTestDatabase } from "../support/test-database.ts";
import { databaseContract, unreachableContract } from "./database-contract.ts";
import { byNeon, byPg, byPooler, openDatabase } from "./ways.ts";

databaseContract("by Neon's HTTP", byNeon);
databaseContract("by pg", byPg);
databaseContract("by pg through a pooler", byPooler);
unreachableContract("by Neon's HTTP", byNeon);
unreachableContract("by pg", byPg);

const db = useTestDatabase();
const sessions = async () => {
  const { rows } = await db.pool.query<{ n: number }>(
    "select count(*)::int as n from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
  );
  return rows[0]?.n ?? 0;
};

test("by pg: an invocation opens two connections at most, and none are left when it has ended", async () => {
  await db.pool.query("select 1");
  const before = await sessions();
  const way = await byPg(db.url);
  expect(await sessions()).toBe(before);
  const database = openDatabase(way.transport);
  const job = { type: "echo", payload: {} };
  await Promise.all(Array.from({ length: 20 }, () => database.run(enqueue([job]))));
  expect(await sessions()).toBe(before + 2);
  await way.close();
  await expect.poll(sessions).toBe(before);
});
