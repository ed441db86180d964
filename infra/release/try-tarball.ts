// Installs a tarball in an empty folder, as a user does, and uses it: every entry point is imported, `sluice init` makes a
// project, the compiler checks it, and wrangler bundles it.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const entryPoints = ["", "/client", "/puller", "/sql", "/test"];

export function tryTarball(tarball: string, log: (line: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "sluice-release-"));
  const run = (command: string, args: string[]) => {
    log(`  ${command} ${args.join(" ")}`);
    try {
      return execFileSync(command, args, {
        cwd: folder,
        encoding: "utf8",
        stdio: ["ignore", "pipe", "pipe"],
      });
    } catch (error) {
      const { stdout, stderr } = error as { stdout: string; stderr: string };
      throw new Error(`${command} ${args.join(" ")} failed:\n${stdout}${stderr}`);
    }
  };
  try {
    writeFileSync(
      join(folder, "package.json"),
      JSON.stringify({ name: "a-release", private: true, type: "module" }),
    );
    run("npm", ["install", "--no-audit", "--no-fund", tarball]);
    run("npx", ["sluice", "init", "--yes"]);
    run("npm", ["install", "--no-audit", "--no-fund"]);
    const imports = entryPoints.map((entry) => `import "sluice${entry}";`).join("\n");
    run("node", ["--input-type=module", "--eval", imports]);
    run("npx", ["sluice", "migrate", "--print"]);
    run("npx", ["tsc", "-p", "."]);
    run("npx", ["wrangler", "deploy", "--dry-run", "--outdir", "out"]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
