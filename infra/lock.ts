// Removes `engines` from the lock files. The project brings its own Node (the dev dependency `node`), so the engines that
// its tools ask for do not matter. With them, npm would print warnings for a newcomer on Node 20.
import { readFileSync, writeFileSync } from "node:fs";

for (const directory of ["..", "../test/bench"]) {
  const path = new URL(`${directory}/package-lock.json`, import.meta.url);
  const lock = JSON.parse(readFileSync(path, "utf8"));
  for (const [name, entry] of Object.entries<{ engines?: unknown }>(lock.packages)) {
    if (name !== "") delete entry.engines;
  }
  writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`);
}
