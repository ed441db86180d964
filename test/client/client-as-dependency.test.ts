// sluice/client as a dependency: what compiles against it, and what it weighs.
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

test("a payload is typed by its definition, by a map of definitions, or not at all", () => {
  const typed = createClient<{ welcome: typeof welcome }>({ url, key });
  const inferred = createClient({ url, key, jobs: { welcome } });
  expectTypeOf(typed).toEqualTypeOf(inferred);
  const neverCalled = () => {
    client.enqueue(welcome, { userId: "u1" });
    // @ts-expect-error: a wrong payload does not compile
    client.enqueue(welcome, { userId: 1 });
    // @ts-expect-error: nor one that lacks a field
    client.enqueueMany(welcome, [{ userId: "u1" }, {}]);
    typed.enqueue("welcome", { userId: "u1" });
    // @ts-expect-error: nor a wrong one under a known name
    typed.enqueue("welcome", { userId: 1 });
    typed.enqueue("another", { userId: 1 });
    // @ts-expect-error: an unknown option
    client.enqueue(welcome, { userId: "u1" }, { prority: 1 });
  };
  expect(neverCalled).toBeTypeOf("function");
});

test("the options are the fields of an enqueue request, every one and no other", () => {
  expectTypeOf<keyof EnqueueOptions>().toEqualTypeOf<
    Exclude<keyof CamelCased<EnqueueRequest>, "type" | "payload">
  >();
});

test("minified and gzipped it has less than 3 kB, and it imports nothing", async () => {
  const { outputFiles, metafile } = await build({
    entryPoints: ["src/client/client.ts"],
    bundle: true,
    minify: true,
    format: "esm",
    platform: "neutral",
    write: false,
    metafile: true,
  });
  expect(gzipSync(outputFiles[0]?.contents ?? "").byteLength).toBeLessThan(3_000);
  const inputs = Object.keys(metafile.inputs);
  expect(inputs.filter((path) => !path.startsWith("src/client/"))).toEqual([]);
});
