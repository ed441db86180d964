// Forms, dialogs and selections of the dashboard in a real Chromium: by keyboard, without JavaScript, and with axe.
import type { Locator, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { violations } from "./axe.ts";
import { adminKey, useSite } from "./site.ts";

const site = await useSite();
const { browser, open, signIn, callApi, makeDeadJob } = site;
const goTo = (page: Page, path: string) => page.goto(site.url() + path);
const isFocused = (element: Locator) => element.evaluate((it) => it.matches(":focus"));

describe.skipIf(!browser)("a dialog", () => {
  test.each(["Escape", "Close"])(
    "closes by %s, and the focus is back at the link that opened it",
    async (how) => {
      await makeDeadJob();
      const page = await open();
      await signIn(page);
      await goTo(page, "/dead-letters?q=type:flaky");
      const opener = page.getByRole("link", { name: /^Replay \d+ of flaky/ });
      await opener.focus();
      await page.keyboard.press("Enter");
      await page.locator("dialog:modal").waitFor();
      expect(await page.locator("#per_minute:focus").count()).toBe(1);
      if (how === "Escape") await page.keyboard.press("Escape");
      else await page.getByRole("link", { name: "Close" }).click();
      await page.waitForURL(/\/dead-letters\?q=type%3Aflaky#/);
      expect(await isFocused(opener)).toBe(true);
    },
  );

  test("keeps the focus inside", async () => {
    await makeDeadJob();
    const page = await open();
    await signIn(page);
    await goTo(page, "/dead-letters/start?action=discard&type=flaky");
    await page.locator("dialog:modal").waitFor();
    for (let step = 0; step < 12; step++) {
      await page.keyboard.press("Tab");
      const isOutside = await page.evaluate(
        "document.activeElement.closest('main > .stack, .side') !== null",
      );
      expect(isOutside).toBe(false);
    }
  });

  test("of the keyboard and the menu of a phone close by Escape", async () => {
    const page = await open({ viewport: { width: 390, height: 844 } });
    await signIn(page);
    await page.getByRole("button", { name: "Menu" }).click();
    await page.getByRole("link", { name: "Audit", exact: true }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Audit", exact: true }).waitFor({ state: "hidden" });
    expect(await isFocused(page.getByRole("button", { name: "Menu" }))).toBe(true);
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog", { name: "Keyboard" }).waitFor({ state: "hidden" });
  });
});

describe.skipIf(!browser)("a refused form", () => {
  test.each([true, false])(
    "keeps what was typed, and says at the field why (with JavaScript: %s)",
    async (javaScriptEnabled) => {
      await makeDeadJob();
      const page = await open({ javaScriptEnabled });
      await signIn(page);
      await goTo(page, "/dead-letters/start?action=replay&type=flaky");
      await page.getByLabel("Why, for the audit").fill("a reason that took long to write");
      await page.getByLabel("Payload patch").fill("{ not JSON");
      await page.getByRole("button", { name: /^Replay \d+ job/ }).click();
      await page.getByText("this is not JSON", { exact: true }).waitFor();
      const patch = page.getByLabel("Payload patch");
      expect(await patch.inputValue()).toBe("{ not JSON");
      expect(await patch.getAttribute("aria-invalid")).toBe("true");
      expect(await isFocused(patch)).toBe(true);
      expect(await page.getByLabel("Why, for the audit").inputValue()).toBe(
        "a reason that took long to write",
      );

      await patch.fill('{ "fail_times": 0 }');
      await page.getByRole("button", { name: /^Replay \d+ job/ }).click();
      await page.getByText(/^Replay \d+ has started/).waitFor();
    },
  );

  test("of a job is open again", async () => {
    const id = await makeDeadJob();
    const page = await open();
    await signIn(page);
    await goTo(page, `/jobs/${id}`);
    await page.getByText("Replay with another payload").click();
    await page.getByLabel("Payload", { exact: true }).last().fill("[1");
    await page.getByRole("button", { name: "Replay with this payload" }).click();
    await page.getByText("this is not JSON", { exact: true }).waitFor();
    expect(await page.getByLabel("Payload", { exact: true }).last().inputValue()).toBe("[1");
    expect(await violations(page)).toEqual([]);
  });
});

test.skipIf(!browser)("by keyboard alone somebody signs in, finds a failed job and replays it", async () => {
  const id = await makeDeadJob();
  const page = await open();
  await goTo(page, "/");
  await tabTo(page, "API key");
  await page.keyboard.type(adminKey);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("j");
  await page.getByRole("heading", { level: 1, name: "Jobs" }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("status:dead type:flaky since:1h");
  await page.keyboard.press("Enter");
  await page.getByText("status:dead", { exact: true }).and(page.locator("[aria-current]")).waitFor();
  await page.keyboard.press("Tab"); // leaves the field, where letters are typed
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(`${site.url()}/jobs/${id}`);
  await tabTo(page, "Replay");
  await page.keyboard.press("Enter");
  await page.getByText(`Job ${id} is replayed.`).waitFor();
});

/** As somebody who has no mouse: until the focus is there. */
async function tabTo(page: Page, name: string): Promise<void> {
  const focused = () =>
    page.evaluate<string>(
      "document.activeElement.labels?.[0]?.textContent ?? document.activeElement.textContent.trim()",
    );
  for (let step = 0; step < 40; step++) {
    if ((await focused()) === name) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`the focus does not get to "${name}"`);
}

describe.skipIf(!browser)("axe finds no violation", () => {
  test("while jobs are selected, at any width", async () => {
    await makeDeadJob();
    await makeDeadJob();
    for (const width of [1440, 390]) {
      const page = await open({ viewport: { width, height: 844 } });
      await signIn(page);
      await goTo(page, "/jobs?status=dead");
      for (const box of (await page.getByRole("checkbox").all()).slice(0, 2)) await box.check();
      await page.getByText("On hold").waitFor(); // no row moves while somebody selects
      expect(await page.getByRole("button", { name: "Replay the dead" }).isVisible()).toBe(true);
      expect(await violations(page)).toEqual([]);
    }
  });

  test.each(["replay", "discard"])(
    "in the dialog of a %s, before and after it is refused",
    async (action) => {
      await makeDeadJob();
      const page = await open();
      await signIn(page);
      await goTo(page, `/dead-letters/start?action=${action}&type=flaky`);
      await page.locator("dialog:modal").waitFor();
      expect(await violations(page)).toEqual([]);
      // Browsers do not send what is no number.
      await page.getByLabel("At most, jobs").evaluate((field) => field.setAttribute("type", "text"));
      await page.getByLabel("At most, jobs").fill("many");
      await page.getByLabel("for the audit").fill("because");
      await page.getByRole("button", { name: /^(Replay|Discard) \d+ job/ }).click();
      await page.getByText("this is not a whole number", { exact: true }).waitFor();
      expect(await violations(page)).toEqual([]);
    },
  );

  test("in the help for the keyboard, in the menu of a phone, and on pages of errors", async () => {
    const page = await open({ viewport: { width: 390, height: 844 } });
    await signIn(page);
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Menu" }).click();
    expect(await violations(page)).toEqual([]);
    for (const path of ["/nothing", "/jobs/nothing", "/jobs?q=nonsense"]) {
      await goTo(page, path);
      expect([path, await violations(page)]).toEqual([path, []]);
    }
  });

  test("on any page of a phone that a viewer sees, and none is wider than the phone", async () => {
    await makeDeadJob();
    const { key } = await callApi<{ key: string }>("/v1/admin/keys", { name: "a phone", role: "viewer" });
    const page = await open({ viewport: { width: 390, height: 844 } });
    await signIn(page, key);
    const links = await page
      .locator(".nav a")
      .evaluateAll((all) => all.map((link) => link.getAttribute("href")));
    expect(links).toHaveLength(11);
    for (const path of links) {
      await goTo(page, path ?? "");
      expect([path, await violations(page)]).toEqual([path, []]);
      expect([path, await page.evaluate("document.documentElement.scrollWidth")]).toEqual([path, 390]);
    }
  });
});
