// Runs the scenario in Node, Deno and Bun: `command.js URL KEY TAG` prints its result.
import { runScenario } from "./scenario.ts";

const [url = "", key = "", tag = ""] = process.argv.slice(2);
console.log(JSON.stringify(await runScenario({ url, key, tag })));
