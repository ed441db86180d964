// 5,000 lanes, one for each queue: a call that reads all of them costs a few buffers for each, and a call that reads one
// costs no more than before. Buffers also show a value that is decompressed again for each lane.
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { changeAlarms } from "../../src/core/sql/index.ts";
import { compile } from "../../src/core/sql/statement.ts";
import { firing } from "../support/alarms.ts";
import { fillLedger } from "../support/busy-books.ts";
import { measure, measureOften, type PlanNode, watchStatements } from "../support/explain.ts";
import { useTestDatabase } from "../support/test-database.ts";
import { times } from "../support/verbs.ts";

const db = useTestDatabase();
const client = new pg.Client({ connectionString: db.url });
const fewLanes = 500;
const lanes = 5000;
let claimOfFew: number;
let watch: Awaited<ReturnType<typeof watchStatements>>;

const claimCost = async () =>
  (await measureOften(5, () => measure(client, "select sluice.claim('small', '{mail}', 1, 600)"))).buffers;

beforeAll(async () => {
  await client.connect();
  await client.query("select sluice.enqueue_many('mail', array_fill('{}'::jsonb, array[100]), 'small')");
  await client.query("set sluice.max_queues = 10000");
  await makeQueues(1, fewLanes);
  claimOfFew = await claimCost();
  await makeQueues(fewLanes + 1, lanes);
  watch = await watchStatements(client);
}, 120_000);
afterAll(() => client.end());

async function makeQueues(first: number, last: number): Promise<void> {
  await client.query(
    `select sluice.enqueue_jobs((
       select jsonb_agg(jsonb_build_object('type', 'echo', 'queue', 'queue-' || n)) from generate_series($1::int, $2::int) as n))`,
    [first, last],
  );
  await fillLedger(client, { rows: last - first + 1 });
  // The third advance reads a row of cursors for all lanes, which is too large for its page.
  for (let n = 0; n < 3; n++) await client.query("select sluice.advance_cursors()");
  await client.query("vacuum analyze");
}

const looks = [
  { what: "a snapshot", text: "select * from sluice.snapshot('{5,15,30}')", most: 8 },
  { what: "the backlog", text: "select * from sluice.backlog('{echo}', 400)", most: 3 },
  { what: "an advance of the cursors", text: "select sluice.advance_cursors()", most: 3 },
  { what: "the recent minutes", text: "select * from sluice.recent_minutes(200)", most: 2 },
  { what: "the durations", text: "select * from sluice.durations(200)", most: 1 },
  { what: "the books", text: "select * from sluice.books", most: 1 },
];

/** The buffers that a call reads whatever the number of lanes. */
const fixedBuffers = 200;
/** The cursors of all lanes are one value, which a claim reads: 16 KB at 5,000 lanes, in a TOAST table with an index. */
const cursorPages = 5;

test.each(looks)(
  "$what reads at most $most buffers for each lane, and does not compare all pairs of lanes",
  async (look) => {
    watch.take();
    const { buffers } = await measureOften(2, () => measure(client, look.text));
    expect(buffers).toBeLessThanOrEqual(look.most * lanes + fixedBuffers);
    expect(mostCompared()).toBeLessThan(5 * lanes);
  },
);

test("the recent minutes of 5,000 queues show the 200 with the most jobs, and one sum for the others", async () => {
  const { rows } = await client.query(
    "select count(distinct queue)::int as queues, sum(enqueued)::int as jobs from sluice.recent_minutes(200)",
  );
  expect(rows).toEqual([{ queues: 201, jobs: lanes + 100 }]);
});

test("a claim from one queue costs the same beside 5,000 others as beside 500", async () => {
  expect(await claimCost()).toBeLessThanOrEqual(claimOfFew + cursorPages);
});

test("5,000 alarms are written and then changed in one call each, without comparing all pairs", async () => {
  watch.take();
  const changes = (version?: number) =>
    times(lanes, (n) => ({
      ...{ state: { ...firing, queue: `queue-${n}` }, version, notice: { of: n } },
    }));
  for (const version of [undefined, 1]) {
    const { text, values } = compile(changeAlarms(changes(version), [{ name: "ops", urlHash: "1" }]));
    const { rowCount } = await client.query(text, values);
    expect(rowCount).toBe(lanes);
  }
  expect(mostCompared()).toBeLessThan(5 * lanes);
});

/** The most pairs that one of the statements since the last call compared. */
function mostCompared(): number {
  return Math.max(...watch.take().map(({ plan }) => rowsCompared(plan)));
}

/** The pairs of rows that joins compared and dropped. */
function rowsCompared(node: PlanNode & { "Rows Removed by Join Filter"?: number }): number {
  const own = (node["Rows Removed by Join Filter"] ?? 0) * node["Actual Loops"];
  return (node.Plans ?? []).reduce((sum, child) => sum + rowsCompared(child), own);
}
