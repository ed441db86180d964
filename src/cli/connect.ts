// Connects to the database at DATABASE_URL. Its errors say in one line what is wrong and what to do, and repeat only
// parts of the URL that are not secret.
import pg from "pg";
import { CommandError, exitCodes, usageError } from "./exit.ts";

const example = "postgresql://user:password@host/database";
const connectWithinMs = 15_000;
const defaultPort = "5432";

export async function connect(databaseUrl: string, log: (line: string) => void): Promise<pg.Client> {
  const target = parseTarget(databaseUrl);
  if (isPooled(target))
    log("warning: DATABASE_URL is a pooled connection string; use the direct one for migrations");
  const client = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: connectWithinMs,
  });
  // If the connection is lost between two queries, the next query fails with an error.
  client.on("error", () => {});
  try {
    await client.connect();
    return client;
  } catch (error) {
    await client.end().catch(() => {});
    const words = explainConnectError(error as ConnectError, target);
    throw new CommandError(words, exitCodes.outOfReach, { cause: error });
  }
}

type ConnectError = Error & { code?: string };

/** An unescaped # / ? @ in the password moves a part of it into the host or the path, so these are checked first. */
export function parseTarget(databaseUrl: string): URL {
  if (!URL.canParse(databaseUrl))
    throw usageError(`DATABASE_URL is not a connection string; its form is ${example}${encodeHint}`);
  const target = new URL(databaseUrl);
  if (!/^postgres(ql)?:$/.test(target.protocol))
    throw usageError(`DATABASE_URL is not a Postgres connection string; its form is ${example}`);
  if (target.hash !== "" || !/^\/[^/@]+$/.test(target.pathname))
    throw usageError(`DATABASE_URL names no database; its form is ${example}${encodeHint}`);
  return target;
}

const encodeHint = " (write # / ? @ in a password as %23 %2F %3F %40)";

/** Recognizes Neon's pooled hosts and Supabase's pooled port. */
function isPooled({ hostname, port }: URL): boolean {
  return /-pooler\./.test(hostname) || port === "6543";
}

export function explainConnectError({ code = "", message }: ConnectError, target: URL): string {
  const host = target.hostname || "localhost";
  const database = decodeURIComponent(target.pathname.slice(1));
  const user = decodeURIComponent(target.username);
  if (code === "ENOTFOUND" || code === "EAI_AGAIN")
    return `the host "${host}" of DATABASE_URL is unknown; check its name`;
  if (/^E[A-Z]+$/.test(code) || /timeout|terminated/i.test(message))
    return `no server answers at ${host}:${target.port || defaultPort} of DATABASE_URL; check host and port, and that the server runs and accepts connections from this machine`;
  if (/client password must be a/.test(message))
    return `the server asks for a password, and DATABASE_URL has none; its form is ${example}`;
  if (/^28/.test(code))
    return `the server refuses the user "${user}" (${message}); check user and password of DATABASE_URL`;
  if (code === "3D000")
    return `there is no database "${database}" on ${host}; create it, or correct DATABASE_URL`;
  return `cannot connect to ${host} of DATABASE_URL: ${message}`;
}
