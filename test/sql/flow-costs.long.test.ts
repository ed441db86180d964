// What flows cost: a flow of 1,000 jobs beside a list of 1,000 jobs in one call, and a step of a chain beside a settle and an
// enqueue by hand. Rounds alternate, so that a slow moment of the machine meets both.
import pg from "pg";
import { expect, test } from "vitest";
import { median } from "../support/explain.ts";
import { threadCpuMs } from "../support/process-cpu.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const rounds = 15;
const jobsOfFlow = 1_000;
const stepsOfChain = 100;

type Call = (client: pg.Client) => Promise<unknown>;

interface Cost {
  ms: number;
  /** Of the server. */
  cpuMs: number;
}

/** The medians of each call. The first round fills caches. */
async function measure<Name extends string>(calls: Record<Name, Call>): Promise<Record<Name, Cost>> {
  const client = new pg.Client({ connectionString: db.url });
  await client.connect();
  const { pid } = (await client.query("select pg_backend_pid() as pid")).rows[0] as { pid: number };
  const names = Object.keys(calls) as Name[];
  const seen = Object.fromEntries(names.map((name) => [name, [] as Cost[]])) as Record<Name, Cost[]>;
  for (let round = 0; round <= rounds; round++)
    for (const name of names) {
      await emptyQueue(db.pool);
      const before = { ms: performance.now(), cpuMs: threadCpuMs(pid) };
      await calls[name](client);
      if (round > 0)
        seen[name].push({ ms: performance.now() - before.ms, cpuMs: threadCpuMs(pid) - before.cpuMs });
    }
  await client.end();
  const medianOf = (field: keyof Cost, costs: readonly Cost[]) => median(costs.map((cost) => cost[field]));
  return Object.fromEntries(
    names.map((name) => [name, { ms: medianOf("ms", seen[name]), cpuMs: medianOf("cpuMs", seen[name]) }]),
  ) as Record<Name, Cost>;
}

/** Of the CPU, which other load changes little. The times are for people to read. */
function ratioOf(what: string, cost: Cost, other: Cost): number {
  const ratio = cost.cpuMs / other.cpuMs;
  process.stdout.write(
    `${what}: ${(cost.ms / other.ms).toFixed(2)} of the time, ${ratio.toFixed(2)} of the CPU\n`,
  );
  return ratio;
}

const numbered = (after: (n: number) => string[]) =>
  Array.from({ length: jobsOfFlow }, (_, n) => ({
    ...{ ref: `j${n}`, type: "echo", payload: { n }, priority: n % 2 === 0 ? 5 : 6 },
    ...(after(n).length > 0 ? { after: after(n) } : {}),
  }));
/** The last job waits for all others. */
const fanIn = numbered((n) => (n === jobsOfFlow - 1 ? Array.from({ length: n }, (_, m) => `j${m}`) : []));
/** Ten layers of a hundred jobs, each of which waits for three of the layer before. */
const layers = numbered((n) =>
  n < 100 ? [] : [0, 1, 2].map((m) => `j${n - 100 - (n % 100) + ((n + m) % 100)}`),
);
const list = numbered(() => []).map(({ ref: _, ...job }) => job);

test("a flow of 1,000 jobs costs at most 3 times a list of 1,000", async () => {
  const enqueueFlow = (jobs: object) => (client: pg.Client) =>
    client.query("select sluice.enqueue_flow($1::jsonb)", [JSON.stringify(jobs)]);
  const costs = await measure({
    list: (client) => client.query("select sluice.enqueue_jobs($1::jsonb)", [JSON.stringify(list)]),
    fanIn: enqueueFlow(fanIn),
    layers: enqueueFlow(layers),
  });
  expect(ratioOf("a fan-in, to a list", costs.fanIn, costs.list)).toBeLessThanOrEqual(3);
  expect(ratioOf("layers, to a list", costs.layers, costs.list)).toBeLessThanOrEqual(3);
});

interface Answer {
  key: string;
  settled: string[] | null;
  leases: { jobs: [string][] }[] | null;
}

const claimText = `
  select sluice.claim('default', '{echo}', 1, 300, p_worker => 'test', p_settle_ids => $1, p_settle_keys => $2,
                      p_settle_outcomes => $3) as answer`;

/** Claims the chain's first job, and goes on with one step after the other. */
async function walk(
  client: pg.Client,
  step: (held: string[], key: string) => Promise<Answer>,
): Promise<void> {
  await client.query("select sluice.enqueue('echo', '{}')");
  const { rows } = await client.query<{ answer: Answer }>(claimText, [null, null, null]);
  let answer = rows[0]?.answer;
  for (let n = 0; n < stepsOfChain; n++) {
    const held = (answer?.leases ?? []).flatMap((lease) => lease.jobs.map(([id]) => id));
    expect(held).toHaveLength(1);
    answer = await step(held, answer?.key ?? "");
  }
}

/** In one round trip, as a chain does it: settles, enqueues only if that was applied, and claims. */
const byHandText = `
  with settled as materialized (select sluice.settle($1, $2) as statuses),
  next as materialized (
    select sluice.enqueue('echo', '{}') as id from settled where statuses[1] = 'completed'
  )
  select sluice.claim('default', '{echo}', 1, 300, p_worker => 'test') as answer from next where id is not null`;

// By hand the jobs do not know of each other. A chain also reads which one it is, and writes a row for the job that comes next.
test("a step of a chain is one call, and costs at most 1.2 times a settle and an enqueue by hand", async () => {
  const ask = async (client: pg.Client, text: string, values: unknown[]) =>
    (await client.query<{ answer: Answer }>(text, values)).rows[0]?.answer as Answer;
  const outcomes = JSON.stringify([{ outcome: "complete", next: { type: "echo", payload: {} } }]);
  const costs = await measure({
    inTransaction: (client) =>
      walk(client, async (held, key) => {
        await client.query("begin"); // as a chain does: both or neither
        await client.query("select sluice.enqueue('echo', '{}')");
        const answer = await ask(client, claimText, [held, [key], null]);
        expect(answer.settled).toEqual(["completed"]); // or else it rolls back
        await client.query("commit");
        return answer;
      }),
    inStatement: (client) => walk(client, (held, key) => ask(client, byHandText, [held, [key]])),
    chain: (client) => walk(client, (held, key) => ask(client, claimText, [held, [key], outcomes])),
  });
  const { chain, inTransaction, inStatement } = costs;
  expect(ratioOf("a step, to one in a transaction by hand", chain, inTransaction)).toBeLessThanOrEqual(1.2);
  expect(ratioOf("a step, to one in a statement by hand", chain, inStatement)).toBeLessThanOrEqual(1.2);
});
