// Writes src/dashboard/assets/bundled.ts: the dashboard's style sheet, scripts and icon as strings. They are part of the
// Worker, so whoever deploys the package has nothing to configure. Run it by `npm run assets`; a test says if it is due.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { transform } from "esbuild";

const directory = join(import.meta.dirname, "../src/dashboard/assets");
const bundled = join(directory, "bundled.ts");
const read = (file: string) => readFileSync(join(directory, file), "utf8");
const contentTypes = {
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
};

/** The text of bundled.ts. */
export async function bundleAssets(): Promise<string> {
  const htmx = createRequire(import.meta.url).resolve("htmx.org/dist/htmx.min.js");
  const assets = [
    toAsset("style", "css", await minify(read("style.css"), "css")),
    toAsset("htmx", "js", readFileSync(htmx, "utf8").replace(/\n\/\/# sourceMappingURL=.*\s*$/, "")),
    toAsset("app", "js", await minify(read("app.js"), "js")),
    toAsset("favicon", "svg", read("favicon.svg").trim()),
  ];
  return [
    "// Made by `npm run assets`: do not edit. htmx is of https://htmx.org, under the licence 0BSD.",
    `export const assets = ${JSON.stringify(Object.fromEntries(assets), null, 2)} as const;`,
    "",
  ].join("\n");
}

async function minify(text: string, loader: "css" | "js"): Promise<string> {
  return (
    await transform(text, { loader, minify: true, target: "esnext", legalComments: "none" })
  ).code.trim();
}

/** The path contains a hash of the content, so that browsers may keep it for ever. */
function toAsset(name: string, extension: keyof typeof contentTypes, body: string) {
  const hash = createHash("sha256").update(body).digest("hex").slice(0, 12);
  const path = `/assets/${name}.${hash}.${extension}`;
  return [name, { path, contentType: contentTypes[extension], body }] as const;
}

if (import.meta.main) writeFileSync(bundled, await bundleAssets());
