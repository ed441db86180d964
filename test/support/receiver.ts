// An HTTP endpoint on loopback for pushed jobs and alarms. The path decides its answer. It keeps every request and has its
// own implementation of signatures. Tests in workerd read its requests over HTTP. An inbox (/inbox/<name>/…) answers 200
// until /switch/<name>?status=… sets another status; with 0 it never answers.
import { createHmac } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ReceivedRequest } from "./received-request.ts";

export interface Receiver {
  url: string;
  close(): Promise<void>;
}

const inboxes = new Map<string, { status: number; retryAfter: string | null }>();

type Answer = (response: ServerResponse, url: URL) => void;

const answers: Record<string, Answer> = {
  /** /answer/503?body=…&type=…&retry-after=… */
  answer(response, url) {
    const retryAfter = url.searchParams.get("retry-after");
    const type = url.searchParams.get("type") ?? "application/json";
    response.writeHead(Number(url.pathname.split("/")[2]), {
      "content-type": type,
      ...(retryAfter ? { "retry-after": retryAfter } : {}),
    });
    response.end(url.searchParams.get("body") ?? "");
  },
  redirect: (response) => response.writeHead(307, { location: "/answer/200" }).end(),
  /** Sends an endless body, as fast as the client reads it. /endless/500 does so with that status. */
  endless(response, url) {
    response.writeHead(Number(url.pathname.split("/")[2] ?? 200), { "content-type": "application/json" });
    const send = () => {
      while (!response.destroyed && response.write("x".repeat(1024)));
      response.once("drain", send);
    };
    send();
  },
  /** Starts its answer and never ends it. */
  stall: (response) => void response.writeHead(200, { "content-type": "application/json" }).write('{"half":'),
  hang: () => {},
  inbox(response, url) {
    const { status, retryAfter } = inboxes.get(url.pathname.split("/")[2] ?? "") ?? {
      status: 200,
      retryAfter: null,
    };
    if (status === 0) return;
    response.writeHead(status, retryAfter ? { "retry-after": retryAfter } : {}).end();
  },
};

export async function startReceiver(): Promise<Receiver> {
  const received: Omit<ReceivedRequest, "expectedSignature">[] = [];
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://receiver");
    const kind = url.pathname.split("/")[1] ?? "";
    const name = url.pathname.split("/")[2] ?? "";
    if (kind === "requests") {
      const wanted = received.filter(
        ({ headers, path }) => headers["webhook-id"] === name || path.split(/[/?]/)[2] === name,
      );
      const secret = url.searchParams.get("secret") ?? "";
      response.end(JSON.stringify(wanted.map((one) => ({ ...one, expectedSignature: sign(one, secret) }))));
      return;
    }
    if (kind === "switch") {
      const status = Number(url.searchParams.get("status"));
      inboxes.set(name, { status, retryAfter: url.searchParams.get("retry-after") });
      response.end();
      return;
    }
    const body = await readBody(request);
    received.push({
      method: request.method ?? "",
      path: request.url ?? "",
      headers: request.headers,
      body,
    });
    const answer = answers[kind];
    if (answer) answer(response, url);
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

function sign({ headers, body }: Omit<ReceivedRequest, "expectedSignature">, secret: string): string {
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
  return `v1,${createHmac("sha256", key).update(signed).digest("base64")}`;
}
