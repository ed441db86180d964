// An HTTP server in front of the Worker, or of the database's HTTP endpoint. It records every request, and a test can turn it
// off and on again at the same port.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface RelayedRequest {
  method: string;
  path: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it sent
  body: any;
  /** 0 until it is answered. */
  status: number;
}

export interface Relay {
  readonly url: string;
  /** All requests since the last `clear`. */
  readonly requests: RelayedRequest[];
  /** The requests to this path. */
  to(path: string): RelayedRequest[];
  clear(): void;
  turnOff(): Promise<void>;
  turnOn(): Promise<void>;
}

export async function startRelay(target: string): Promise<Relay> {
  const requests: RelayedRequest[] = [];
  const open = async (port: number) => {
    const server = createServer((request, response) => {
      relay(request, response).catch(() => response.destroy());
    });
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    return server;
  };

  async function relay(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url = "", headers } = request;
    const text = await readBody(request);
    const record = { method, path: url, body: text ? JSON.parse(text) : undefined, status: 0 };
    requests.push(record);
    const answer = await fetch(new URL(url, target), {
      method,
      headers: endToEnd(headers),
      ...(text && { body: text }),
    });
    const body = await answer.text();
    record.status = answer.status;
    const kept = ["content-type", "retry-after"].flatMap((name) => {
      const value = answer.headers.get(name);
      return value === null ? [] : [[name, value] as const];
    });
    response.writeHead(answer.status, Object.fromEntries(kept)).end(body);
  }

  let server: Server = await open(0);
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    to: (path) => requests.filter((request) => request.path === path),
    clear: () => void requests.splice(0),
    async turnOff() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
    async turnOn() {
      server = await open(port);
    },
  };
}

/** Without those that belong to one connection. */
function endToEnd(headers: IncomingMessage["headers"]): Record<string, string> {
  const own = ["host", "connection", "keep-alive", "transfer-encoding", "content-length", "accept-encoding"];
  const kept = Object.entries(headers).filter(([name]) => !own.includes(name));
  return Object.fromEntries(kept.map(([name, value]) => [name, String(value)]));
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
