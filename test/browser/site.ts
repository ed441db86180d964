// A Worker with a database of its own, and a browser that looks at its dashboard.
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, inject } from "vitest";
import { useTestDatabase } from "../support/test-database.ts";
import { startWorkerd, type Workerd } from "../support/workerd.ts";
import { startChromium } from "./chromium.ts";

export const adminKey = "sk_the_key_of_the_browser_tests";

export interface Site {
  /** Undefined if there is no browser on this machine. */
  browser: Browser | undefined;
  url(): string;
  /** A new page, of somebody who has not signed in. */
  open(options?: Parameters<Browser["newContext"]>[0]): Promise<Page>;
  signIn(page: Page, key?: string): Promise<void>;
  callApi<Answer>(path: string, body: object, method?: string): Promise<Answer>;
  enqueue(job: object): Promise<{ job_id: string }>;
  /** It has used up its only attempt. */
  makeDeadJob(): Promise<string>;
}

export async function useSite(): Promise<Site> {
  const db = useTestDatabase();
  const browser = await startChromium();
  let workerd: Workerd | undefined;
  let url = "";
  let context: BrowserContext | undefined;

  beforeAll(async () => {
    workerd = await startWorkerd({
      worker: new URL("../../src/worker.ts", import.meta.url).pathname,
      bindings: {
        DATABASE_URL: db.url,
        SLUICE_NEON_ENDPOINT: inject("neonEndpoint"),
        SLUICE_ADMIN_KEY: adminKey,
        SLUICE_ENVIRONMENT: "production",
      },
    });
    url = workerd.url.replace(/\/$/, "");
  });
  afterEach(async () => {
    await context?.close();
  });
  afterAll(async () => {
    await browser?.close();
    await workerd?.stop();
  });

  const site: Site = {
    browser,
    url: () => url,
    async open(options = {}) {
      context = await browser?.newContext({ viewport: { width: 1440, height: 900 }, ...options });
      const page = await context?.newPage();
      if (!page) throw new Error("there is no browser");
      return page;
    },
    async signIn(page, key = adminKey) {
      await page.goto(url);
      await page.getByLabel("API key").fill(key);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    },
    async callApi(path, body, method = "POST") {
      const headers = { authorization: `Bearer ${adminKey}`, "content-type": "application/json" };
      const response = await fetch(url + path, { method, headers, body: JSON.stringify(body) });
      return (await response.json()) as never;
    },
    enqueue: (job) => site.callApi("/v1/jobs", job),
    async makeDeadJob() {
      const { job_id } = await site.enqueue({
        type: "flaky",
        payload: { fail_times: 1 },
        max_attempts: 1,
      });
      await expect
        .poll(
          async () =>
            (await db.pool.query("select status from sluice.jobs where id = $1", [job_id])).rows[0]?.status,
        )
        .toBe("dead");
      return job_id;
    },
  };
  return site;
}
