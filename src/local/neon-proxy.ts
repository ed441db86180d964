// Neon's two protocols in front of the local Postgres, so that the Worker uses the same driver as in production:
// POST /sql (one query or a batch), and a WebSocket that relays bytes. The connection string in each request names
// the user and the database. The server is always the local one.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { pipeline } from "node:stream";
import { createWebSocketStream, WebSocketServer } from "ws";
import { type Answer, answerSql } from "./neon-sql.ts";
import { openPools } from "./postgres-pools.ts";

export interface NeonProxy {
  port: number;
  endpoint: string;
  /** The number of POSTs to /sql so far. On Neon each of them is a round trip. */
  requests(): number;
  /** Ends the idle connections to one database, so that it can be dropped. */
  closeDatabase(name: string): Promise<void>;
  close(): Promise<void>;
}

const host = "127.0.0.1";
const bodyLimitBytes = 64 * 1024 * 1024;
/** Longer than any client keeps an idle connection. If the server closed it first, the client's next request would fail. */
const keepAliveMs = 10 * 60_000;

export async function startNeonProxy(options: { postgresPort: number; port?: number }): Promise<NeonProxy> {
  const pools = openPools({ host, port: options.postgresPort });
  let requests = 0;
  const server = createServer({ keepAliveTimeout: keepAliveMs }, async (request, response) => {
    if (request.method !== "POST" || request.url !== "/sql")
      return send(response, problem(404, "the only endpoint is POST /sql"));
    requests++;
    const length = Number(request.headers["content-length"]);
    if (length > bodyLimitBytes) return send(response, problem(413, "the request is too large"));
    const body = await readBody(request);
    if (body !== undefined) send(response, await answerSql(pools, request.headers, body));
  });
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (socket) => {
    const stream = createWebSocketStream(socket);
    // Either side may close at any time. pipeline then closes the other.
    pipeline(stream, connect(options.postgresPort, host), stream, () => socket.terminate());
  });
  await new Promise<void>((resolve, reject) => {
    server.on("error", reject);
    server.listen(options.port ?? 0, host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    endpoint: `http://${host}:${port}/sql`,
    requests: () => requests,
    closeDatabase: pools.closeDatabase,
    close: async () => {
      for (const socket of sockets.clients) socket.terminate();
      server.closeAllConnections();
      await Promise.all([pools.close(), new Promise((resolve) => server.close(resolve))]);
    },
  };
}

/** Undefined if the client closed the connection before the end, or sent too much. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request) {
      bytes += chunk.length;
      if (bytes > bodyLimitBytes) return undefined;
      chunks.push(chunk);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks).toString("utf8");
}

function problem(status: number, message: string): Answer {
  return { status, body: JSON.stringify({ message }) };
}

function send(response: ServerResponse, { status, body }: Answer): void {
  response.on("error", () => {});
  response.writeHead(status, { "content-type": "application/json" }).end(body);
}
