// Older versions of PostgreSQL: where their programs are, and a server for one test file.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type PostgresServer, startPostgres } from "../../src/local/postgres.ts";

/** Where Debian's packages install a version. They are built with LLVM, so only they have JIT. */
export function systemPrograms(major: number): string | undefined {
  const bin = `/usr/lib/postgresql/${major}/bin`;
  return existsSync(join(bin, "postgres")) ? bin : undefined;
}

export interface ServerOptions {
  bin?: string;
  env?: Record<string, string>;
  settings?: Record<string, string>;
}

/** Starts a server on a free port. Its data is removed when it stops. */
export async function startServer(options: ServerOptions): Promise<PostgresServer> {
  const directory = mkdtempSync(join(tmpdir(), "sluice-postgres-"));
  const removeParent = () => rmSync(directory, { recursive: true, force: true });
  try {
    const server = await startPostgres({ directory: join(directory, "data"), ephemeral: true, ...options });
    return { ...server, stop: () => server.stop().finally(removeParent) };
  } catch (error) {
    removeParent();
    throw error;
  }
}
