// Groups, lists and runs at 100,000 dead letters of 50 kinds, while another transaction keeps every dead row from being removed.
// The tests count buffers rather than time, as they are the same on every machine.
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { countDead, listDeadGroups, listDeadLetters } from "../../src/core/sql/index.ts";
import { compile, type Statement } from "../../src/core/sql/statement.ts";
import { holdSnapshot } from "../support/churn.ts";
import { wrongGroups } from "../support/dead-groups.ts";
import { measure, measureOften } from "../support/explain.ts";
import { useTestDatabase } from "../support/test-database.ts";
import { verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
const client = new pg.Client({ connectionString: db.url });
let release: () => Promise<void>;

/** Five types, each with ten kinds of error. Of the last type there are only a hundred. */
const fill = `
  set search_path to sluice;
  create temp table line as
    select number, lane_of('default', 'type' || number, 5::smallint) as lane from generate_series(0, 4) as number;
  create temp table dead as
    select n, new_id() as id, lane, n / 1000 % 10 as kind
    from generate_series(1, 100000) as n
    join line on number = case when n % 1000 = 0 then 4 else n % 4 end;
  insert into job (id, lane, max_attempts, payload) select id, lane, 3, '{"a": 1}' from dead;
  insert into failed_attempt (id, attempt, started_at, failed_at, message)
    select id, 1, now(), now(), format('kind %s: HTTP %s from https://example.com/%s', chr(97 + kind), n % 600, n) from dead;
  insert into closed (id, status, reason, closed_at, lane, attempt, abandonments, fingerprint)
    select id, 'dead', 'exhausted', now() - n * interval '0.5 s', lane, 3, 0, error_fingerprint(message)
    from dead join failed_attempt using (id) order by n desc;
  insert into ledger (lane, enqueued, dead) select lane, count(*), count(*) from dead group by lane;
  select fold_deaths(1000000);
  analyze;`;

beforeAll(async () => {
  await client.connect();
  await client.query(fill);
  release = await holdSnapshot(db.url);
}, 120_000);
afterAll(async () => {
  await release();
  await client.end();
});

const buffersOf = async (statement: Statement<unknown>) => {
  const { text, values } = compile(statement, "sluice");
  return (await measureOften(5, () => measure(client, text, values))).buffers;
};
const allGroups = listDeadGroups({ limit: 100 });

async function costs() {
  const { groups } = await db.run(allGroups);
  const rare = { type: "type4", fingerprint: groups.at(-1)?.fingerprint };
  return {
    groups: await buffersOf(allGroups),
    count: await buffersOf(countDead({ type: "type1" })),
    rare: await buffersOf(listDeadLetters({ ...rare, limit: 20 })),
    type: await buffersOf(listDeadLetters({ type: "type4", limit: 20 })),
    all: await buffersOf(listDeadLetters({ limit: 20 })),
  };
}

test("groups and lists read a bounded number of buffers, also after half of the jobs were replayed", async () => {
  const { groups, totalGroups, totalDead } = await db.run(allGroups);
  expect([totalGroups, totalDead, groups.length]).toEqual([50, 100_000, 50]);
  const limits = { groups: 1_500, count: 100, rare: 1_500, type: 1_500, all: 2_500 };
  const before = await costs();
  await client.query(
    "select sluice.start_dead_run('ann','replay',null,null,null,null,null,50000,null,null,null)",
  );
  let most = 0;
  for (let more = true; more; ) {
    const call = await measure(client, "select sluice.advance_dead_runs(1) as step", []);
    most = Math.max(most, call.buffers);
    const [left] = await queue.query("select from sluice.dead_run where state = 'running'");
    more = left !== undefined;
  }
  const after = await costs();
  for (const cost of [before, after])
    for (const [name, limit] of Object.entries(limits))
      expect([name, cost[name as keyof typeof cost] <= limit], JSON.stringify(cost)).toEqual([name, true]);
  expect((await db.run(allGroups)).totalDead).toBe(50_000);
  expect(await wrongGroups(queue)).toEqual([]);
}, 120_000);
