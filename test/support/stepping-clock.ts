// A Postgres whose clock a test can move, by libfaketime.
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PostgresServer } from "../../src/local/postgres.ts";
import { startServer } from "./postgres-versions.ts";

const libraryPaths = ["x86_64-linux-gnu", "aarch64-linux-gnu"].map(
  (machine) => `/usr/lib/${machine}/faketime/libfaketimeMT.so.1`,
);

export interface SteppingPostgres extends PostgresServer {
  /** Sets how many seconds the server's clock is ahead of the system's. */
  setAhead(seconds: number): void;
}

export async function startSteppingPostgres(): Promise<SteppingPostgres> {
  const library = libraryPaths.find((path) => existsSync(path));
  if (!library)
    throw new Error(
      `libfaketime is not installed: run \`apt-get install faketime\` (looked for ${libraryPaths.join(", ")})`,
    );
  const directory = mkdtempSync(join(tmpdir(), "sluice-clock-"));
  chmodSync(directory, 0o755); // Postgres may run as another user
  const file = join(directory, "ahead");
  const setAhead = (seconds: number) => writeFileSync(file, `${seconds < 0 ? "" : "+"}${seconds}\n`);
  setAhead(0);
  const server = await startServer({
    env: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: "1",
      DONT_FAKE_MONOTONIC: "1",
    },
  });
  const removeFile = () => rmSync(directory, { recursive: true, force: true });
  return { ...server, setAhead, stop: () => server.stop().finally(removeFile) };
}
