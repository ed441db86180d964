// The flags of `npm run bench`.
import { parseArgs } from "node:util";
import type { Size } from "./workloads/workload.ts";

export interface Flags {
  size: Exclude<Size, "smoke">;
  workloads: readonly string[];
  systems: readonly string[];
  /** Another checkout of Sluice, measured as the system "before". */
  beside: string | undefined;
  out: string;
  help: boolean;
}

/** What can be chosen. */
export interface Choices {
  workloads: readonly { name: string; about: string }[];
  systems: readonly string[];
}

export function usage({ workloads, systems }: Choices): string {
  const width = Math.max(...workloads.map(({ name }) => name.length));
  const list = workloads.map(({ name, about }) => `  ${name.padEnd(width)}  ${about}`).join("\n");
  return `usage: npm run bench -- [flags]

Measures Sluice beside its peers on one PostgreSQL that waits for its disk, all in one run. Read the ratios: times are
this machine's. A full run takes about 35 minutes; leave the machine alone meanwhile.

  --quick           small sizes, one round: about 4 minutes, and rough
  --only A,B        these workloads (see below)
  --systems A,B     these systems: ${systems.join(", ")}
  --beside DIR      another checkout of Sluice, with its node_modules, as one more system named "before". Shows what a
                    change of the engine gains or costs. Writes to .sluice/bench
  --out DIRECTORY   for results.json, results.md and the charts: docs/bench, with --quick .sluice/bench. What it has of
                    other workloads, from a run of the same kind, is kept
  --help            this text

Workloads:
${list}`;
}

/** The flags, or an error text. */
export function parseFlags(args: string[], choices: Choices): Flags | string {
  let values: ReturnType<typeof parse>;
  try {
    values = parse(args);
  } catch (error) {
    return (error as Error).message;
  }
  const known = { only: choices.workloads.map(({ name }) => name), systems: choices.systems };
  const chosen = { only: namesIn(values.only), systems: namesIn(values.systems) };
  for (const flag of ["only", "systems"] as const) {
    const unknown = chosen[flag]?.find((name) => !known[flag].includes(name));
    if (unknown !== undefined) return `--${flag} knows ${known[flag].join(", ")}, not "${unknown}"`;
  }
  return {
    size: values.quick ? "quick" : "full",
    workloads: chosen.only ?? known.only,
    systems: chosen.systems ?? known.systems,
    beside: values.beside,
    out: values.out ?? (values.quick || values.beside ? ".sluice/bench" : "docs/bench"),
    help: values.help,
  };
}

function namesIn(list: string | undefined): string[] | undefined {
  return list?.split(",").map((name) => name.trim());
}

function parse(args: string[]) {
  return parseArgs({
    args,
    options: {
      quick: { type: "boolean", default: false },
      only: { type: "string" },
      systems: { type: "string" },
      beside: { type: "string" },
      out: { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    },
  }).values;
}
