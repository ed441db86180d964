// npm run screenshots: starts the demo, and takes the pictures of the documentation in a real Chromium.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Page } from "playwright-core";
import type { DevJson } from "../../src/local/dev-directory.ts";
import { freePort } from "../../src/local/ports.ts";
import { endAllRuns, startDev, until } from "../e2e/dev-run.ts";
import { startChromium } from "./chromium.ts";

const folder = join(import.meta.dirname, "../../docs/screenshots");
const maxBytes = 200_000;
/** So long the demo runs before: jobs have used up their attempts by then, and alarms have fired. */
const runForMs = 75_000;

interface Picture {
  name: string;
  scheme: "light" | "dark";
  open(page: Page, stack: DevJson): Promise<unknown>;
}

const goTo = (path: string) => (page: Page, stack: DevJson) => page.goto(stack.url + path);

const pictures: Picture[] = [
  { name: "overview-light", scheme: "light", open: goTo("/") },
  { name: "overview-dark", scheme: "dark", open: goTo("/") },
  { name: "jobs-light", scheme: "light", open: selectJobs },
  { name: "job-dark", scheme: "dark", open: openDeadJob },
  { name: "dead-letters-light", scheme: "light", open: goTo("/dead-letters") },
  { name: "flow-dark", scheme: "dark", open: openFlow },
];

async function selectJobs(page: Page, { url }: DevJson): Promise<void> {
  await page.goto(`${url}/jobs?q=status:dead`);
  for (const index of [1, 2, 4]) await page.getByRole("checkbox").nth(index).check();
}

/** One that has used up its attempts. */
async function openDeadJob(page: Page, { url }: DevJson): Promise<void> {
  await page.goto(`${url}/jobs?q=status:dead+type:send_receipt`);
  await page.getByRole("row", { name: "exhausted" }).first().getByRole("link").first().click();
}

async function openFlow(page: Page, { url, admin_key }: DevJson): Promise<void> {
  const response = await fetch(`${url}/v1/flows`, { headers: { authorization: `Bearer ${admin_key}` } });
  const { flows } = (await response.json()) as { flows: { flow_id: string; total: number }[] };
  const largest = flows.toSorted((a, b) => b.total - a.total)[0];
  await page.goto(`${url}/flows/${largest?.flow_id}`);
}

async function takeAll(stack: DevJson): Promise<void> {
  const browser = await startChromium();
  if (!browser) throw new Error("there is no Chromium on this machine");
  try {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    await page.goto(stack.url);
    await page.getByLabel("API key").fill(stack.admin_key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    for (const { name, scheme, open } of pictures) {
      await page.emulateMedia({ colorScheme: scheme });
      await open(page, stack);
      const path = join(folder, `${name}.png`);
      await page.screenshot({ path });
      const { size } = statSync(path);
      process.stdout.write(`${name}.png: ${Math.ceil(size / 1000)} kB\n`);
      if (size > maxBytes) throw new Error(`${path} is larger than ${maxBytes / 1000} kB`);
    }
  } finally {
    await browser.close();
  }
}

const directory = mkdtempSync(join(tmpdir(), "sluice-screenshots-"));
chmodSync(directory, 0o755); // Postgres runs as another user if this runs as root
mkdirSync(folder, { recursive: true });
try {
  const stack = await startDev(["--demo", "--port", String(await freePort())], { directory }).ready();
  process.stdout.write(`The demo runs at ${stack.url}. The pictures come after ${runForMs / 1000} s.\n`);
  await sleep(runForMs);
  await until("the Worker answers", async () => (await fetch(`${stack.url}/health`)).ok);
  await takeAll(stack);
} finally {
  await endAllRuns();
  rmSync(directory, { recursive: true, force: true });
}
