// Filters the output of `wrangler dev`: it shows the Worker's logs, a line for each job that ends, and every error. A round that fails at every tick
// shows its error once, and again after the code has changed.
import { stripVTControlCharacters } from "node:util";
import { createJobLines } from "./job-lines.ts";

const noise = [
  /^$/,
  /^\[wrangler:info\]/,
  /^Using secrets defined in /,
  /^Your Worker has access to the following bindings:/,
  /^Binding +Resource +Mode$/,
  /^env\.\S+ .*(Environment Variable|Worker|local)\b/,
  /^⎔ /,
  // Explains the list of bindings, which is not shown.
  /^Service bindings, Durable Object bindings, and Tail consumers connect to other /,
  // Warns that crons do not fire. The ticker fires them.
  /Scheduled Workers are not automatically triggered/,
  /^To manually trigger a scheduled event, run:/,
  /^curl "http.*\/cdn-cgi\//,
  /^For more details, see .*#test-cron-triggers-locally/,
];
const reload = /^⎔ Reloading/;
const uncaught = /^✘ \[ERROR\] Uncaught /;
const stackLine = /^ +at /;

export function createOutputFilter(show: (line: string) => void): (line: string) => void {
  const showJobs = createJobLines(show);
  const shown = new Set<string>();
  let isRepeated = false;
  return (line) => {
    const text = stripVTControlCharacters(line).trimEnd();
    if (reload.test(text)) shown.clear();
    if (noise.some((pattern) => pattern.test(text.trimStart()))) return;
    if (showJobs(text)) return;
    if (!stackLine.test(text)) isRepeated = uncaught.test(text) && shown.has(text);
    if (isRepeated) return;
    if (uncaught.test(text)) shown.add(text);
    show(text);
  };
}
