// Drops `engines` from the lock files. The project brings its own Node (the dev dependency `node`), so what a
// tool asks of the machine's Node does not apply here; left in, it greets a newcomer on Node 20 with warnings.
import { readFileSync, writeFileSync } from "node:fs";

for (const directory of ["..", "../test/bench"]) {
  const path = new URL(`${directory}/package-lock.json`, import.meta.url);
  const lock = JSON.parse(readFileSync(path, "utf8"));
  for (const [name, entry] of Object.entries<{ engines?: unknown }>(lock.packages)) {
    if (name !== "") delete entry.engines;
  }
  writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`);
}
