// The dashboard in a real Chromium, with a real Worker and a real Postgres behind it.
import { describe, expect, test } from "vitest";
import { pages } from "../../src/dashboard/pages.ts";
import { violations } from "./axe.ts";
import { adminKey, useSite } from "./site.ts";

const site = await useSite();
const { browser, open, signIn, callApi, enqueue, makeDeadJob } = site;

describe.skipIf(!browser)("in Chromium", () => {
  test("somebody signs in, finds a failed job, reads why, replays it with a better payload and watches it complete", async () => {
    const id = await makeDeadJob();
    const page = await open();
    await signIn(page);
    await page.getByRole("link", { name: "Jobs", exact: true }).click();
    await page.getByRole("link", { name: "status:dead" }).click();
    await page.getByRole("link", { name: "flaky", exact: true }).first().click();
    expect(page.url()).toBe(`${site.url()}/jobs/${id}`);
    await page.getByText("attempt 1 of 1 that fail", { exact: true }).waitFor();
    await page.getByText("Replay with another payload").click();
    await page.getByLabel("Payload", { exact: true }).last().fill('{ "fail_times": 0 }');
    await page.getByRole("button", { name: "Replay with this payload" }).click();
    await page.getByText(`Job ${id} is replayed.`).waitFor();
    // The page refreshes itself: nothing is clicked from here on.
    await page.getByText("completed", { exact: true }).waitFor({ timeout: 15_000 });
  });

  test("a viewer sees the job but no button that changes it", async () => {
    const id = await makeDeadJob();
    const { key } = await callApi<{ key: string }>("/v1/admin/keys", { name: "a viewer", role: "viewer" });
    const page = await open();
    await signIn(page, key);
    await page.goto(`${site.url()}/jobs/${id}`);
    await page.getByText("attempt 1 of 1 that fail", { exact: true }).waitFor();
    expect(await page.getByRole("button", { name: "Replay" }).count()).toBe(0);
  });

  test("a type is paused and resumed", async () => {
    const page = await open();
    await signIn(page);
    await page.goto(`${site.url()}/types`);
    const row = page.getByRole("row", { name: "echo" });
    await row.getByRole("button", { name: "Pause" }).click();
    await row.getByText("paused").waitFor();
    await row.getByRole("button", { name: "Resume" }).click();
    await row.getByText("runs", { exact: true }).waitFor();
  });

  test("everything works without JavaScript", async () => {
    const id = await makeDeadJob();
    const page = await open({ javaScriptEnabled: false });
    await signIn(page);
    await page.goto(`${site.url()}/jobs/${id}`);
    await page.getByRole("button", { name: "Replay", exact: true }).click();
    await page.getByText(`Job ${id} is replayed.`).waitFor();
    await page.getByRole("button", { name: "Dark" }).click();
    expect(await page.locator("html").getAttribute("data-theme")).toBe("dark");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor();
  });

  test.each(["127.0.0.1", "localhost"])("a link on another site leads in, at %s too", async (host) => {
    const own = site.url().replace("127.0.0.1", host);
    const page = await open();
    await page.goto(own);
    await page.getByLabel("API key").fill(adminKey);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    await page.goto(`data:text/html,<a href="${own}/jobs?q=status:dead">a notice</a>`);
    await page.getByRole("link", { name: "a notice" }).click();
    await page.getByRole("heading", { level: 1, name: "Jobs" }).waitFor();
    expect(page.url()).toBe(`${own}/jobs?q=status:dead`);
  });

  test("keys go to pages, to the search, to rows and to the help", async () => {
    await enqueue({ type: "approval" });
    const page = await open();
    await signIn(page);
    await page.keyboard.press("g");
    await page.keyboard.press("j");
    await page.getByRole("heading", { level: 1, name: "Jobs" }).waitFor();
    await page.keyboard.press("j");
    expect(await page.locator("tbody tr a:focus").count()).toBe(1);
    await page.keyboard.press("/");
    expect(await page.locator("#q:focus").count()).toBe(1);
    await page.keyboard.type("g"); // typed, not a shortcut
    await page.keyboard.press("Escape");
    await page.locator("#q").blur();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
  });

  test("an opened part of a page stays open while the page refreshes itself, and what is typed stays", async () => {
    const id = await makeDeadJob();
    const page = await open();
    await signIn(page);
    await page.goto(`${site.url()}/jobs/${id}`);
    await page.getByText("Discard", { exact: true }).first().click();
    await page.getByLabel("Reason").fill("not needed");
    await page.getByLabel("Reason").blur();
    await page.waitForResponse((response) => response.request().headers()["hx-request"] === "true");
    await page.waitForTimeout(200);
    expect(await page.getByLabel("Reason").inputValue()).toBe("not needed");
    expect(await page.getByLabel("Reason").isVisible()).toBe(true);
  });

  test.each(["an error of somebody else", "no answer at all"])(
    "%s leaves an open page as it is, with a message until the next answer",
    async (kind) => {
      const page = await open();
      await signIn(page);
      await page.route("**/*", (route) => {
        if (route.request().headers()["hx-request"] !== "true") return route.continue();
        if (kind === "no answer at all") return route.abort();
        return route.fulfill({ status: 502, contentType: "text/html", body: "<h1>Bad gateway</h1>" });
      });
      const message = page.getByRole("alert").filter({ hasText: "No answer since" });
      await message.waitFor({ timeout: 20_000 });
      expect(await page.getByRole("heading", { level: 1 }).innerText()).toBe("Overview");
      expect(await page.locator("#live").innerText()).toContain("No answer since");
      await page.unroute("**/*");
      await message.waitFor({ state: "detached", timeout: 20_000 });
      expect(await page.locator("#live").innerText()).toContain("Live");
    },
  );

  test("the menu counts a new dead letter while a page is open", async () => {
    const page = await open();
    await signIn(page);
    await page.goto(`${site.url()}/audit`);
    const counted = page.locator(".nav li", { hasText: "Dead letters" }).locator(".nav-n");
    const before = (await counted.count()) === 0 ? 0 : Number(await counted.innerText());
    await page.evaluate("document.isMarked = true");
    await makeDeadJob();
    await expect.poll(() => counted.innerText(), { timeout: 20_000 }).toBe(String(before + 1));
    expect(await page.evaluate("document.isMarked")).toBe(true); // the page was not opened again
  });

  test("nothing breaks the content security policy", async () => {
    const page = await open();
    const faults: string[] = [];
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") faults.push(message.text());
    });
    page.on("pageerror", (error) => faults.push(String(error)));
    await signIn(page);
    for (const path of await paths()) await page.goto(site.url() + path);
    expect(faults).toEqual([]);
  });

  test("axe finds no violation on any page, in light and in dark", { timeout: 180_000 }, async () => {
    const page = await open();
    await page.goto(site.url());
    expect(await violations(page)).toEqual([]);
    await signIn(page);
    for (const path of await paths()) {
      await page.goto(site.url() + path);
      expect([path, await violations(page)]).toEqual([path, []]);
    }
  });
});

/** Every page, with something to show on it. */
async function paths(): Promise<string[]> {
  const id = await makeDeadJob();
  const jobs = [
    { ref: "a", type: "approval" },
    { ref: "b", type: "echo", after: ["a"] },
  ];
  const { flow_id } = await callApi<{ flow_id: string }>("/v1/flows", { jobs });
  await callApi("/v1/workers", { worker_id: "a", queues: ["default", "other"] });
  await callApi("/v1/workers", { worker_id: "b", queues: ["default"] });
  await callApi("/v1/schedules/nightly", { cron: "0 2 * * *", type: "echo" }, "PUT");
  await callApi("/v1/schedules/nightly/run", {});
  await enqueue({ type: "flaky", payload: { fail_times: 1 }, max_attempts: 1, partition_key: "blocked" });
  await enqueue({ type: "approval", fair_key: "large" });
  await callApi("/v1/admin/queues/other/pause", {});
  const run = { action: "replay", type: "flaky", per_minute: 1 };
  const { run_id } = await callApi<{ run_id: string }>("/v1/admin/dlq-runs", run);
  const examples: Record<string, string> = {
    "/jobs/:id": `/jobs/${id}`,
    "/flows/:id": `/flows/${flow_id}`,
    "/queues/:queue": "/queues/default",
    "/types/:type": "/types/echo",
    "/dead-letters/runs/:run": `/dead-letters/runs/${run_id}`,
  };
  const shown = pages.map(({ path }) => examples[path] ?? path);
  expect(shown.filter((path) => path.includes(":"))).toEqual([]);
  return shown;
}
