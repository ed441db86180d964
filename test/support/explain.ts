// Measures what a call did on the server: every statement that ran inside its functions, with its plan from auto_explain,
// and the buffers and the time of the whole call.
import type pg from "pg";

export interface PlanNode {
  "Node Type": string;
  "Relation Name"?: string;
  "Index Name"?: string;
  "Actual Loops": number;
  "Actual Rows": number;
  "Shared Hit Blocks": number;
  "Shared Read Blocks": number;
  "WAL Bytes"?: number;
  Plans?: PlanNode[];
}

export interface NestedStatement {
  text: string;
  plan: PlanNode;
  buffers: number;
}

export interface Call {
  buffers: number;
  ms: number;
  walBytes: number;
}

/** Makes the session report every statement, also those inside functions. */
export async function watchStatements(client: pg.ClientBase): Promise<{ take(): NestedStatement[] }> {
  const statements: NestedStatement[] = [];
  client.on("notice", ({ message = "" }) => {
    const start = message.indexOf("{");
    if (!message.startsWith("duration:") || start < 0) return;
    const { "Query Text": text, Plan: plan } = JSON.parse(message.slice(start)) as {
      "Query Text": string;
      Plan: PlanNode;
    };
    statements.push({ text, plan, buffers: buffersOf(plan) });
  });
  await client.query(`
    load 'auto_explain';
    set auto_explain.log_level = notice;
    set auto_explain.log_format = json;
    set auto_explain.log_nested_statements = on;
    set auto_explain.log_analyze = on;
    set auto_explain.log_buffers = on;
    set auto_explain.log_timing = off;
    set auto_explain.log_min_duration = 0`);
  return { take: () => statements.splice(0) };
}

/** Runs the statement with its effects, and returns the cost of the whole call. */
export async function measure(client: pg.ClientBase, text: string, values: unknown[] = []): Promise<Call> {
  const { rows } = await client.query(
    `explain (analyze, buffers, wal, timing off, format json) ${text}`,
    values,
  );
  const [{ Plan: plan, "Execution Time": ms }] = rows[0]["QUERY PLAN"] as [
    { Plan: PlanNode; "Execution Time": number },
  ];
  return { buffers: buffersOf(plan), ms, walBytes: plan["WAL Bytes"] ?? 0 };
}

export interface Scan {
  relation: string;
  /** Null means that the whole table was read. */
  index: string | null;
}

/** The scans that ran. A partition has its parent's name here, and its index has the names of its columns. */
export function scansOf(statements: readonly NestedStatement[]): Scan[] {
  const scans = new Map<string, Scan>();
  const visit = (node: PlanNode, relation: string | undefined) => {
    const own = node["Relation Name"] ?? relation;
    if (node["Actual Loops"] > 0 && own !== undefined) {
      const index = node["Index Name"];
      if (index !== undefined || node["Node Type"] === "Seq Scan") {
        const scan = { relation: wholeName(own), index: index === undefined ? null : wholeName(index) };
        scans.set(JSON.stringify(scan), scan);
      }
    }
    // A bitmap index scan names no table. Its table is that of the heap scan above it.
    for (const child of node.Plans ?? [])
      visit(child, node["Node Type"] === "Bitmap Heap Scan" ? own : undefined);
  };
  for (const { plan } of statements) visit(plan, undefined);
  return [...scans.values()];
}

/** The median of each cost, without the first calls, which fill the session's caches. */
export async function measureOften(times: number, call: () => Promise<Call>): Promise<Call> {
  const calls: Call[] = [];
  for (let round = 0; round < times + warmUps; round++) calls.push(await call());
  const counted = calls.slice(warmUps);
  return {
    buffers: median(counted.map(({ buffers }) => buffers)),
    ms: median(counted.map(({ ms }) => ms)),
    walBytes: median(counted.map(({ walBytes }) => walBytes)),
  };
}

const warmUps = 7;

export function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

function buffersOf(plan: PlanNode): number {
  return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
}

function wholeName(name: string): string {
  return name.replace(/^(job|done)_(\d{8}|default)/, "$1");
}
