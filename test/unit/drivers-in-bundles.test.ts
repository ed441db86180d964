// Each way to the database brings only its own driver into a Worker's bundle.
import { builtinModules } from "node:module";
import { join } from "node:path";
import { build } from "esbuild";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");

async function driversIn(imports: string): Promise<string[]> {
  const contents = `${imports}
    export default sluice({ jobs: [defineJob("note", { payload: z.object({}), run() {} })] });`;
  const { metafile } = await build({
    stdin: { contents: `import * as z from "zod"; ${contents}`, resolveDir: root, loader: "ts" },
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2024",
    conditions: ["workerd", "worker", "browser"],
    external: ["node:*", "cloudflare:*", ...builtinModules],
    write: false,
    metafile: true,
  });
  const [output] = Object.values(metafile.outputs);
  const used = Object.entries(output?.inputs ?? {}).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  const drivers = used.flatMap(([name]) => /node_modules\/(@neondatabase|pg)\//.exec(name)?.[1] ?? []);
  return [...new Set(drivers)];
}

test.each([
  ["sluice", 'import { defineJob, sluice } from "./src/index.ts";', ["@neondatabase"]],
  [
    "sluice/hyperdrive",
    'import { defineJob } from "./src/index.ts"; import { sluice } from "./src/hyperdrive.ts";',
    ["pg"],
  ],
])("a Worker with the `sluice` of %s has one driver", async (_, imports, drivers) => {
  expect(await driversIn(imports)).toEqual(drivers);
});
