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
});
