// A Postgres whose clock steps when it is told to: libfaketime between the server and the system's clock.
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PostgresServer } from "../../infra/local/postgres.ts";
import { startServer } from "./postgres-versions.ts";

const places = ["x86_64-linux-gnu", "aarch64-linux-gnu"].map(
  (machine) => `/usr/lib/${machine}/faketime/libfaketimeMT.so.1`,
);

export interface SteppingPostgres extends PostgresServer {
  /** From now on the server's clock is ahead of the system's by so many seconds. */
  setAhead(seconds: number): void;
}

export async function startSteppingPostgres(): Promise<SteppingPostgres> {
  const library = places.find((place) => existsSync(place));
  if (!library)
    throw new Error(
      `libfaketime is not installed: run \`apt-get install faketime\` (looked for ${places.join(", ")})`,
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
