// The dashboard's assets in the Worker are those of its sources, and small enough.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { bundleAssets } from "../../infra/dashboard-assets.ts";
import { assets } from "../../src/dashboard/assets/bundled.ts";

const maxKib = 40;

test("bundled.ts is current: if not, run `npm run assets`", async () => {
  const file = join(import.meta.dirname, "../../src/dashboard/assets/bundled.ts");
  expect(readFileSync(file, "utf8")).toBe(await bundleAssets());
});

test(`a browser loads at most ${maxKib} KiB, gzipped`, () => {
  const sizes = Object.values(assets).map(({ body }) => gzipSync(body).length);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(maxKib * 1024);
});

test("no two assets have the same path, and each path has a hash", () => {
  const paths = Object.values(assets).map(({ path }) => path);
  expect(new Set(paths).size).toBe(paths.length);
  for (const path of paths) expect(path).toMatch(/^\/assets\/\w+\.[0-9a-f]{12}\.(css|js|svg)$/);
});
