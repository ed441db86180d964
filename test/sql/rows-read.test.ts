// A claim reads few rows for each job that it takes, whatever else waits. The server counts the rows of every scan of every
// statement inside the call.
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ClaimedRow, heldOf } from "../support/churn.ts";
import { type PlanNode, watchStatements } from "../support/explain.ts";
import { ciSize, commonTypes, fillQueue, rareType } from "../support/large-queue.ts";
import { useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const client = new pg.Client({ connectionString: db.url });
let watch: Awaited<ReturnType<typeof watchStatements>>;

beforeAll(async () => {
  await client.connect();
  await fillQueue(client, { ...ciSize, waiting: 20_000, scheduled: 5_000, finished: 0, dead: 0 });
  await client.query("analyze");
  watch = await watchStatements(client);
}, 60_000);
afterAll(() => client.end());

const wide = [...commonTypes, rareType];
const cases = [
  { types: ["mail"], limit: 100, most: 2.5 },
  { types: ["mail"], limit: 400, most: 2.5 },
  // With several lanes, a claim reads ahead before it locks rows, and twice if one lane has most of the jobs.
  { types: wide, limit: 100, most: 12 },
  { types: wide, limit: 1000, most: 7 },
];

test.each(cases)(
  "a claim of $limit jobs of $types.length types reads at most $most rows of `ready` for each job, and one of `job`",
  async ({ types, limit, most }) => {
    for (let claim = 0; claim < 2; claim++) await client.query(claimText, [types, limit]);
    watch.take();
    const { rows } = await client.query<ClaimedRow>(claimText, [types, limit]);
    const read = rowsRead(watch.take().map(({ plan }) => plan));
    const claimed = heldOf(rows).ids.length;
    expect(claimed).toBeGreaterThan(limit / 2);
    expect((read.get("ready") ?? 0) / claimed).toBeLessThanOrEqual(most);
    expect(read.get("job")).toBe(claimed);
    expect(read.get("scheduled") ?? 0).toBe(0);
  },
);

const claimText = "select sluice.claim('default', $1, $2::int, 600) as claimed";

type ScanNode = PlanNode & { "Rows Removed by Filter"?: number };

function rowsRead(plans: readonly PlanNode[]): Map<string, number> {
  const read = new Map<string, number>();
  const visit = (node: PlanNode) => {
    const { "Relation Name": relation, ...scan } = node as ScanNode;
    if (relation !== undefined && scan["Node Type"].endsWith("Scan")) {
      const table = relation.replace(/_(\d{8}|default)$/, "");
      const rows = scan["Actual Rows"] + (scan["Rows Removed by Filter"] ?? 0);
      read.set(table, (read.get(table) ?? 0) + rows * scan["Actual Loops"]);
    }
    for (const child of node.Plans ?? []) visit(child);
  };
  for (const plan of plans) visit(plan);
  return read;
}
