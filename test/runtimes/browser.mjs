// Runs the scenario in a page of the API's own origin: `browser.mjs URL KEY TAG` prints its result. It is plain JavaScript,
// because the types of its imports exist only after an install.
import chromium from "@sparticuz/chromium";
import { chromium as driver } from "playwright-core";

const [url, key, tag] = process.argv.slice(2);
const executablePath = await chromium.executablePath();
const browser = await driver.launch({ executablePath, args: chromium.args, headless: true });
const page = await browser.newPage();
await page.goto(url);
const account = await page.evaluate(
  async (options) => {
    const { runScenario } = await import("/scenario.js");
    return runScenario({ ...options, url: location.origin });
  },
  { key, tag },
);
console.log(JSON.stringify(account));
await browser.close();
