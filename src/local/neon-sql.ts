// Answers POST /sql as Neon does: rows as the text that Postgres sent, a SQL error as 400 with its SQLSTATE, any other
// error as 503. A batch is one transaction.
import type { IncomingHttpHeaders } from "node:http";
import pg from "pg";
import type { Login, Pools } from "./postgres-pools.ts";

export interface Answer {
  status: number;
  body: string;
}

interface Query {
  query: string;
  params?: unknown[];
}

const isolationLevels = new Map([
  ["ReadUncommitted", "read uncommitted"],
  ["ReadCommitted", "read committed"],
  ["RepeatableRead", "repeatable read"],
  ["Serializable", "serializable"],
]);

export async function answerSql(pools: Pools, headers: IncomingHttpHeaders, body: string): Promise<Answer> {
  const login = loginOf(headers);
  const request = parse(body);
  if (!login) return answer(400, { message: "Neon-Connection-String is missing or malformed" });
  if (!request) return answer(400, { message: "the body is neither a query nor a batch of queries" });
  try {
    const result = await pools.withClient<unknown>(login, (client) =>
      "queries" in request ? runBatch(client, request.queries, headers) : runQuery(client, request, headers),
    );
    return answer(200, result);
  } catch (error) {
    return errorAnswer(error as Error);
  }
}

async function runBatch(client: pg.ClientBase, queries: Query[], headers: IncomingHttpHeaders) {
  const results = [];
  await client.query(`begin ${transactionMode(headers)}`);
  try {
    for (const query of queries) results.push(await runQuery(client, query, headers));
    await client.query("commit");
  } catch (error) {
    // If this fails too, the connection is lost, and Postgres rolls back by itself.
    await client.query("rollback").catch(() => {});
    throw error;
  }
  return { results };
}

async function runQuery(client: pg.ClientBase, query: Query, headers: IncomingHttpHeaders) {
  const rowAsArray = headers["neon-array-mode"] === "true";
  const rawText = headers["neon-raw-text-output"] === "true";
  const config = {
    text: query.query,
    values: query.params ?? [],
    // Always a prepared statement, as on Neon, so that several statements in one query are an error.
    queryMode: "extended",
    ...(rowAsArray ? { rowMode: "array" } : {}),
    ...(rawText ? { types: { getTypeParser: () => (text: string) => text } } : {}),
  };
  const { fields, rows, command, rowCount } = await client.query(config as pg.QueryConfig);
  return { fields, rows, command, rowCount, rowAsArray };
}

function transactionMode(headers: IncomingHttpHeaders): string {
  const level = isolationLevels.get(String(headers["neon-batch-isolation-level"]));
  return [
    level ? `isolation level ${level}` : "",
    headers["neon-batch-read-only"] === "true" ? "read only" : "",
    headers["neon-batch-deferrable"] === "true" ? "deferrable" : "",
  ].join(" ");
}

function loginOf(headers: IncomingHttpHeaders): Login | undefined {
  const text = String(headers["neon-connection-string"]);
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const database = decodeURIComponent(url.pathname.slice(1));
  const user = decodeURIComponent(url.username);
  return user && database ? { user, database } : undefined;
}

function parse(body: string): Query | { queries: Query[] } | undefined {
  try {
    const value = JSON.parse(body);
    if (typeof value?.query === "string" || Array.isArray(value?.queries)) return value;
  } catch {
    // Not JSON.
  }
  return undefined;
}

function errorAnswer(error: Error): Answer {
  if (!(error instanceof pg.DatabaseError)) return answer(503, { message: error.message });
  const { message, name: _, ...fields } = { ...error, message: error.message };
  return answer(400, { message, ...fields });
}

function answer(status: number, value: unknown): Answer {
  return { status, body: JSON.stringify(value) };
}
