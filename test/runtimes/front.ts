// A server of one's own in front of Sluice, as a browser needs it: it serves the page and hands the rest on, so that both
// have one origin. Of every POST the first answer is lost: the Worker has done it, and the client is told 503.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Front {
  url: string;
  /** How many answers were lost. */
  lost: number;
  close(): Promise<void>;
}

export async function startFront({ target, script }: { target: string; script: string }): Promise<Front> {
  const seen = new Set<string>();
  const server = createServer(async (request, response) => {
    const { method = "", url = "" } = request;
    if (url === "/") return void response.setHeader("content-type", "text/html").end("<!doctype html>");
    if (url === "/scenario.js") return void response.setHeader("content-type", "text/javascript").end(script);
    const body = await readBody(request);
    const answer = await fetch(target + url, { method, headers: headersOf(request), ...(body && { body }) });
    const asked = `${method} ${url} ${body}`;
    if (method === "GET" || seen.has(asked)) return void (await handOn(answer, response));
    seen.add(asked);
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
