// The flags of `npm run simulate`.
import { parseArgs } from "node:util";
import type { SimulationOptions } from "./simulate.ts";

export interface Flags extends SimulationOptions {
  out: string;
  help: boolean;
}

const numbers = {
  workers: { default: 8, min: 3, max: 64, about: "workers at the start" },
  keys: { default: 200, min: 1, max: 10_000, about: "partition keys" },
  jobs: { default: 6_000, min: 1, max: 1_000_000, about: "jobs, enqueued over the whole time" },
  seconds: { default: 30, min: 2, max: 3_600, about: "how long workers join, die, hang, return and leave" },
  "lease-seconds": {
    default: 2,
    min: 0.5,
    max: 60,
    about: "the lease of each claim. A worker hangs 2.5 times as long",
  },
  seed: { default: 1, min: 0, max: 2 ** 31, about: "what happens to the workers, and when" },
} as const;
type NumberFlag = keyof typeof numbers;
const defaultOut = "docs/simulation.svg";

export const usage = `usage: npm run simulate -- [flags]

Starts Postgres and lets workers join, die, hang, return and leave while jobs with partition keys come in, over the real hash
ring and real claims. Checks every attempt: order, one worker for each key at a time, nothing lost. Prints who owned what, and
draws it. Ends with code 1 if a law was violated.

${Object.entries(numbers)
  .map(([name, { default: value, about }]) => `  --${`${name} N`.padEnd(18)}${about} (default ${value})`)
  .join("\n")}
  --out FILE          the drawing (default ${defaultOut})
  --help              print this text

In the registry of workers time passes ten times as fast: a heartbeat every second, and a worker is gone after 3 s.`;

/** Returns the flags, or a text that says what is wrong with them. */
export function parseFlags(args: string[]): Flags | string {
  let values: ReturnType<typeof parse>;
  try {
    values = parse(args);
  } catch (error) {
    return (error as Error).message;
  }
  const texts: Record<string, string | boolean | undefined> = values;
  for (const [name, { min, max }] of Object.entries(numbers)) {
    const text = texts[name];
    if (text !== undefined && !(Number(text) >= min && Number(text) <= max))
      return `--${name} takes a number from ${min} to ${max}, not "${text}"`;
  }
  const numberOf = (name: NumberFlag) => Number(texts[name] ?? numbers[name].default);
  return {
    workers: Math.floor(numberOf("workers")),
    keys: Math.floor(numberOf("keys")),
    jobs: Math.floor(numberOf("jobs")),
    seconds: numberOf("seconds"),
    leaseSeconds: numberOf("lease-seconds"),
    seed: Math.floor(numberOf("seed")),
    out: values.out ?? defaultOut,
    help: values.help ?? false,
  };
}

function parse(args: string[]) {
  const text = { type: "string" } as const;
  return parseArgs({
    args,
    options: {
      ...{
        workers: text,
        keys: text,
        jobs: text,
        seconds: text,
        "lease-seconds": text,
        seed: text,
        out: text,
      },
      help: { type: "boolean", short: "h" },
    },
  }).values;
}
