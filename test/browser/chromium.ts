// Starts a real Chromium: the one that SLUICE_TEST_BROWSER names, the one of the package on Linux x64, or an installed Chrome.
// Without any, the tests are skipped and say why. In CI that is an error.
import { mkdirSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { type Browser, chromium } from "playwright-core";
import manifest from "../../package.json" with { type: "json" };

/** Undefined if there is no browser on this machine. */
export async function startChromium(): Promise<Browser | undefined> {
  try {
    return await chromium.launch(await launchOptions());
  } catch (error) {
    if (process.env.CI) throw error;
    process.stderr.write(`The browser tests are skipped: ${(error as Error).message.split("\n")[0]}\n`);
    return undefined;
  }
}

async function launchOptions(): Promise<Parameters<typeof chromium.launch>[0]> {
  // As root Chromium's own sandbox does not start.
  const args = userInfo().uid === 0 ? ["--no-sandbox"] : [];
  const executablePath = process.env.SLUICE_TEST_BROWSER ?? (await packagedChromium());
  return executablePath ? { executablePath, args } : { channel: "chrome", args };
}

/**
 * The package unpacks into the directory for temporary files and takes whatever lies there: so it gets one of this user and
 * this version. It reads the variable when it is imported.
 */
async function packagedChromium(): Promise<string | undefined> {
  if (process.platform !== "linux" || process.arch !== "x64") return undefined;
  const version = manifest.devDependencies["@sparticuz/chromium"];
  const before = process.env.TMPDIR;
  process.env.TMPDIR = join(tmpdir(), `sluice-chromium-${version}-${userInfo().uid}`);
  mkdirSync(process.env.TMPDIR, { recursive: true, mode: 0o700 });
  try {
    const { default: packaged } = await import("@sparticuz/chromium");
    return await packaged.executablePath();
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
}
