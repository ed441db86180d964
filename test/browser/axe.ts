// Looks for violations of the rules of accessibility with axe.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** In light and in dark, where only the contrast can differ. The page's policy does not bind the test itself. */
export async function violations(page: Page): Promise<string[]> {
  await page.emulateMedia({ colorScheme: "light" });
  const light = await page.evaluate<AxeResult>(`${axe}; axe.run()`);
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await page.evaluate<AxeResult>("axe.run({ runOnly: ['color-contrast'] })");
  return [...light.violations, ...dark.violations].map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
}

interface AxeResult {
  violations: { id: string; nodes: { html: string }[] }[];
}
