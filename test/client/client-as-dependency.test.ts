// sluice/client and sluice/puller as dependencies: their types and their size.
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { createClient, type EnqueueOptions } from "../../src/client/client.ts";
import type { CamelCased } from "../../src/client/field-names.ts";
import type { EnqueueRequest } from "../../src/contract/jobs.ts";
import { defineJob } from "../../src/jobs/define.ts";

const welcome = defineJob("welcome", { payload: z.object({ userId: z.string() }), run: () => {} });
const url = "https://sluice.example";
const key = "sk_of_a_producer";
const client = createClient({ url, key });

test("a payload gets its type from its definition or from a map of definitions, or has none", () => {
  const typed = createClient<{ welcome: typeof welcome }>({ url, key });
  const inferred = createClient({ url, key, jobs: { welcome } });
  expectTypeOf(typed).toEqualTypeOf(inferred);
  const neverCalled = () => {
    client.enqueue(welcome, { userId: "u1" });
    // @ts-expect-error: a wrong payload does not compile
    client.enqueue(welcome, { userId: 1 });
    // @ts-expect-error: a payload that lacks a field does not compile
    client.enqueueMany(welcome, [{ userId: "u1" }, {}]);
    typed.enqueue("welcome", { userId: "u1" });
    // @ts-expect-error: a wrong payload for a type's name does not compile
    typed.enqueue("welcome", { userId: 1 });
    // @ts-expect-error: a misspelt name does not compile
    typed.enqueue("welcom", { userId: "u1" });
    client.enqueue("any_name", { userId: 1 });
    // @ts-expect-error: an unknown option does not compile
    client.enqueue(welcome, { userId: "u1" }, { prority: 1 });
  };
  expect(neverCalled).toBeTypeOf("function");
});

test("the options are exactly the fields of an enqueue request", () => {
  expectTypeOf<keyof EnqueueOptions>().toEqualTypeOf<
    Exclude<keyof CamelCased<EnqueueRequest>, "type" | "payload">
  >();
});

test.each([
  { folder: "client", kilobytes: 3, alsoFrom: ["src/core/flow.ts"] },
  {
    folder: "puller",
    kilobytes: 9,
    alsoFrom: [
      "src/client/",
      "src/core/errors.ts",
      "src/core/next.ts",
      "src/queue/drain/",
      "src/queue/steps/",
    ],
  },
])(
  "the $folder is less than $kilobytes kB minified and gzipped, and imports no package",
  async (expected) => {
    const { folder, kilobytes, alsoFrom } = expected;
    const { outputFiles, metafile } = await build({
      entryPoints: [`src/${folder}/${folder}.ts`],
      bundle: true,
      minify: true,
      format: "esm",
      platform: "neutral",
      write: false,
      metafile: true,
    });
    expect(gzipSync(outputFiles[0]?.contents ?? "").byteLength).toBeLessThan(kilobytes * 1000);
    const allowed = [`src/${folder}/`, ...alsoFrom];
    const inputs = Object.keys(metafile.inputs);
    expect(inputs.filter((path) => !allowed.some((start) => path.startsWith(start)))).toEqual([]);
  },
);
