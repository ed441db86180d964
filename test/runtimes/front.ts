// A server in front of Sluice, as a browser needs it: it serves the page and forwards the rest, so that both have one
// origin. It loses the first answer to every POST: the Worker has done the work, and the client gets a 503.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Front {
  url: string;
  /** The number of lost answers. */
  lost: number;
  close(): Promise<void>;
}

export async function startFront({ target, script }: { target: string; script: string }): Promise<Front> {
  const lostRequests = new Set<string>();
  const server = createServer(async (request, response) => {
    const { method = "", url = "" } = request;
    if (url === "/") return void response.setHeader("content-type", "text/html").end("<!doctype html>");
    if (url === "/scenario.js") return void response.setHeader("content-type", "text/javascript").end(script);
    const body = await readBody(request);
    const answer = await fetch(target + url, { method, headers: headersOf(request), ...(body && { body }) });
    const requestText = `${method} ${url} ${body}`;
    if (method === "GET" || lostRequests.has(requestText)) return void (await handOn(answer, response));
    lostRequests.add(requestText);
    front.lost++;
    response.writeHead(503, { "retry-after": "0" }).end("it may have been done");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const front: Front = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    lost: 0,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return front;
}

function headersOf({ headers }: IncomingMessage): Record<string, string> {
  return { authorization: headers.authorization ?? "", "content-type": headers["content-type"] ?? "" };
}

async function handOn(answer: Response, response: ServerResponse): Promise<void> {
  const type = answer.headers.get("content-type") ?? "text/plain";
  response.writeHead(answer.status, { "content-type": type }).end(await answer.text());
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
