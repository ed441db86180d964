// A group of dead letters is replayed in a real Chromium.
import { describe, expect, test } from "vitest";
import { useSite } from "./site.ts";

const { browser, open, signIn, enqueue } = await useSite();
const dead = 4;

describe.skipIf(!browser)("in Chromium, with and without JavaScript", () => {
  test.each([true, false])(
    "a group is replayed with a rate and a patch, and stopped half-way (%s)",
    async (javaScriptEnabled) => {
      const what = javaScriptEnabled ? "printer" : "scanner";
      for (let n = 0; n < dead; n++)
        await enqueue({ type: "fatal", payload: { message: `the ${what} ${n} is away` } });
      const page = await open({ javaScriptEnabled });
      await signIn(page);
      const replay = page.getByRole("link", { name: `Replay ${dead} of fatal, fatal: the ${what}` });
      await expect
        .poll(
          async () => {
            await page.getByRole("link", { name: "Dead letters", exact: true }).click();
            return replay.count();
          },
          { timeout: 20_000, interval: 500 },
        )
        .toBe(1);

      await replay.click();
      expect(await page.locator("dialog[open]").innerText()).toMatch(
        /^Replay dead letters\s+4\s+jobs of fatal match/,
      );
      await page.getByLabel("Rate, jobs a minute").fill("1");
      await page.getByLabel("Payload patch").fill('{ "message": "it died again" }');
      await page.getByLabel("Why, for the audit").fill("paper is back");
      await page.getByRole("button", { name: `Replay ${dead} jobs` }).click();

      await page.getByText(`has started: ${dead} jobs.`).waitFor();
      await page.getByText(/“paper is back” by admin, 1 a minute/).waitFor();
      await page.getByText(/Stopping leaves the other \d dead, as they are\./).waitFor();
      await page.getByRole("button", { name: "Stop" }).click();
      await page.getByText(/is stopped: \d jobs? (was|were) replayed, the other \d are dead/).waitFor();
      expect(await page.getByRole("button", { name: "Stop" }).count()).toBe(0);
      await page
        .getByRole("link", { name: /^Replay \d+$/ })
        .first()
        .click();
      await page.getByText("was stopped").waitFor();
    },
  );

  test.each([true, false])(
    "two groups are selected and replayed together (%s)",
    async (javaScriptEnabled) => {
      const what = javaScriptEnabled ? "door" : "window";
      for (const end of ["open", "shut"])
        for (let n = 0; n < 2; n++)
          await enqueue({ type: "fatal", payload: { message: `the ${what} ${n} is ${end}` } });
      const page = await open({ javaScriptEnabled });
      await signIn(page);
      const boxes = page.getByRole("checkbox", { name: `Select fatal, fatal: the ${what}` });
      await expect
        .poll(
          async () => {
            await page.getByRole("link", { name: "Dead letters", exact: true }).click();
            const [groups, jobs] = [
              await boxes.count(),
              await page.getByRole("link", { name: `2 of fatal, fatal: the ${what}` }).count(),
            ];
            return [groups, jobs];
          },
          { timeout: 20_000, interval: 500 },
        )
        .toEqual([2, 4]); // Replay and Discard of each
      await boxes.nth(0).check();
      await boxes.nth(1).check();
      await page.getByRole("button", { name: "Replay", exact: true }).click();
      expect(await page.locator("dialog[open]").innerText()).toMatch(
        /^Replay dead letters\s+4\s+jobs of 2 groups/,
      );
      await page.getByRole("link", { name: "Close" }).click();
      expect(await boxes.nth(1).isChecked()).toBe(true);
      await page.getByRole("button", { name: "Replay", exact: true }).click();
      await page.getByLabel("Rate of each group").fill("1");
      await page.getByRole("button", { name: "Replay 4 jobs" }).click();
      await page.getByText("2 runs have started, one for each group.").waitFor();
      expect(await page.getByRole("button", { name: "Stop" }).count()).toBe(2);
      for (let runs = 2; runs > 0; runs--) {
        await page.getByRole("button", { name: "Stop" }).first().click();
        await page.getByText(/^Run \d+ is stopped/).waitFor();
      }
    },
  );
});
