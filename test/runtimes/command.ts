// The scenario as a program of Node, Deno and Bun: `command.js URL KEY TAG` prints its account.
import { runScenario } from "./scenario.ts";

const [url = "", key = "", tag = ""] = process.argv.slice(2);
console.log(JSON.stringify(await runScenario({ url, key, tag })));
