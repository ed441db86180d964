// The code repeats parts of package.json and wrangler.toml, as a Worker cannot read them. Both must agree.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { version } from "../../src/contract/version.ts";
import { defaultCrons } from "../../src/edge/sluice.ts";
import { readCrons } from "../../src/local/crons.ts";

const read = (file: string) => readFileSync(join(import.meta.dirname, "../..", file), "utf8");

test("the API document has the version in package.json", () => {
  expect(version).toBe(JSON.parse(read("package.json")).version);
});

test("wrangler.toml has the cron of every round, and no other", () => {
  expect(readCrons(read("wrangler.toml")).sort()).toEqual(Object.values(defaultCrons).sort());
});
