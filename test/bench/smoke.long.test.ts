// The bench at its smallest size. It runs, every system's jobs run exactly once, and its results can be read. Times are not
// checked.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { systems, workloads } from "./choices.ts";
import { parseFlags, usage } from "./flags.ts";
import { installPeers } from "./peers.ts";
import { writeResults } from "./report/write.ts";
import { type Results, runBench } from "./run.ts";
import { stageOn } from "./stage.ts";

const choices = { workloads, systems: Object.keys(systems) };
const directory = mkdtempSync(join(tmpdir(), "sluice-bench-smoke-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

async function bench(systemNames: readonly string[], workloadNames: readonly string[]): Promise<Results> {
  const stage = await stageOn(inject("adminDatabaseUrl"));
  const results = await runBench({
    stage,
    systems: systemNames.flatMap((name) => systems[name]?.() ?? []),
    workloads: workloads.filter(({ name }) => workloadNames.includes(name)),
    size: "smoke",
    log: () => {},
  });
  await stage.close();
  return results;
}

describe("Sluice alone", () => {
  let results: Results;
  beforeAll(async () => {
    results = await bench(
      ["sluice"],
      workloads.map(({ name }) => name),
    );
  }, 240_000);

  test("runs every workload, and every result is a number", () => {
    expect(results.failures).toEqual([]);
    expect(new Set(results.samples.map(({ workload }) => workload))).toEqual(
      new Set(workloads.map(({ name }) => name)),
    );
    expect(results.samples.filter(({ value }) => !Number.isFinite(value))).toEqual([]);
  });

  test("needs 1 round trip for a drained batch of 100 over HTTP, and 3 more for the last settle and the round", () => {
    const trips = results.samples.find(({ what }) => what === "http: round trips for a batch of 100");
    expect(trips?.value).toBeCloseTo((3 + 3) / 3);
  });

  test("is written as JSON, Markdown and well-formed SVG; a later run of one workload keeps the others", () => {
    writeResults(directory, results);
    const again = results.samples.filter(({ workload }) => workload === "wal");
    writeResults(directory, { ...results, samples: again, pinPoints: [] });
    const read = (name: string) => readFileSync(join(directory, name), "utf8");
    const { samples, pinPoints, rows, machine } = JSON.parse(read("results.json"));
    expect(samples).toHaveLength(results.samples.length);
    expect(pinPoints).toEqual(results.pinPoints);
    expect(rows.find(({ what }: { what: string }) => what.startsWith("pinned: buffers")).verdict.isMet).toBe(
      true,
    );
    expect(machine.cores).toBeGreaterThan(0);
    expect(read("results.md")).toContain("| drain by 100, 1 connection | jobs/s |");
    for (const name of ["pin-claims.svg", "pin-rate.svg"]) expectWellFormed(read(name));
  });
});

test("every job of every peer runs exactly once", async () => {
  installPeers(() => {});
  const peers = choices.systems.filter((name) => name !== "sluice");
  const results = await bench(peers, ["drain"]);
  expect(results.failures).toEqual([]);
  for (const { name, version } of results.systems) {
    expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(results.samples.filter(({ system }) => system === name)).toHaveLength(4 + 8);
  }
}, 120_000);

test("every job with a key of every peer that knows keys runs exactly once", async () => {
  installPeers(() => {});
  const peers = choices.systems.filter((name) => name !== "sluice");
  const results = await bench(peers, ["keys", "shares"]);
  expect(results.failures).toEqual([]);
  const systemsOf = (what: RegExp) =>
    new Set(results.samples.filter((sample) => what.test(sample.what)).map(({ system }) => system));
  expect(systemsOf(/^one hot key/)).toEqual(new Set(["pg-boss", "graphile-worker", "pgmq"]));
  expect(systemsOf(/^ten behind .*: others/)).toEqual(new Set(["pgmq"]));
  expect(systemsOf(/^20 tenants, by 100/)).toEqual(new Set(["pgmq"]));
}, 120_000);

test("an invalid flag is an error that lists the choices", () => {
  expect(parseFlags(["--only", "dr"], choices)).toMatch(/^--only knows enqueue, .*, not "dr"$/);
  expect(parseFlags(["--systems", "sluice,kafka"], choices)).toMatch(/not "kafka"$/);
  expect(parseFlags(["--rounds", "3"], choices)).toMatch(/--rounds/);
  expect(parseFlags(["--quick", "--only", "drain,pin"], choices)).toMatchObject({
    size: "quick",
    workloads: ["drain", "pin"],
    systems: choices.systems,
  });
  expect(usage(choices)).toContain("--quick");
});

/** Tags that close in order, attributes in quotes, no bare < or &. */
function expectWellFormed(svg: string): void {
  const token = /<(\/?)([a-z]+)((?: [\w-]+="[^"<&]*")*)(\/?)>|[^<>&]+|&(?:amp|lt|gt);/y;
  const open: string[] = [];
  while (token.lastIndex < svg.length) {
    const at = token.lastIndex;
    const [, isEnd, name = "", , isEmpty] =
      token.exec(svg) ?? expect.fail(`not XML: ${svg.slice(at, at + 40)}`);
    if (isEnd) expect(open.pop()).toBe(name);
    else if (name && !isEmpty) open.push(name);
  }
  expect(open).toEqual([]);
}
