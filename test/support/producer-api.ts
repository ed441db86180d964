// The producers' routes of the API over a real socket, with jobs in a Map: enough for tests of the client. A test can make
// the next requests fail, and can read every request.
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type * as z from "zod";
import type { enqueueRequest, JobResponse } from "../../src/contract/jobs.ts";

type EnqueueBody = z.input<typeof enqueueRequest>;

export interface ReceivedRequest {
  method: string;
  path: string;
  headers: IncomingMessage["headers"];
  body: unknown;
}

/** `drop` closes the connection before the request is handled, `lose` after it. `hang` never answers. */
export type Mishap =
  | "drop"
  | "lose"
  | "hang"
  | { status: number; headers?: Record<string, string>; body?: string };

export interface ProducerApi {
  url: string;
  requests: ReceivedRequest[];
  jobs: Map<string, JobResponse>;
  /** Faults for the next requests, one for each. */
  mishaps: Mishap[];
  /** Called before GET returns a job. */
  beforeGet(job: JobResponse): void;
  close(): Promise<void>;
}

export async function startProducerApi(): Promise<ProducerApi> {
  const server = createServer(async (request, response) => {
    const text = await readBody(request);
    const received = {
      method: request.method ?? "",
      path: request.url ?? "",
      headers: request.headers,
      body: text ? JSON.parse(text) : undefined,
    };
    api.requests.push(received);
    await answer(api, received, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const api: ProducerApi = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    jobs: new Map(),
    mishaps: [],
    beforeGet: () => {},
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return api;
}

async function answer(api: ProducerApi, request: ReceivedRequest, response: ServerResponse): Promise<void> {
  const mishap = api.mishaps.shift();
  if (mishap === "hang") return;
  if (mishap === "drop") return void response.destroy();
  if (typeof mishap === "object") {
    return void response.writeHead(mishap.status, mishap.headers).end(mishap.body);
  }
  const [status, body] = handle(api, request);
  if (mishap === "lose") return void response.destroy();
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function handle(api: ProducerApi, { method, path, body }: ReceivedRequest): [status: number, body: object] {
  if (method === "POST" && path === "/v1/jobs") {
    const made = enqueue(api, body as EnqueueBody);
    return [made.deduplicated ? 200 : 201, made];
  }
  if (method === "POST" && path === "/v1/jobs/batch") {
    const { jobs } = body as { jobs: EnqueueBody[] };
    if (jobs.length < 1 || jobs.length > 100) return problem(400, "request_invalid", "1 to 100 jobs");
    return [201, { jobs: jobs.map((job) => enqueue(api, job)) }];
  }
  const [, id = "", verb] = /^\/v1\/jobs\/([^/]+)(\/cancel)?$/.exec(path) ?? [];
  const job = api.jobs.get(id);
  if (!job) return problem(404, "not_found", `there is no job ${id}`);
  if (!verb) api.beforeGet(job);
  else if (job.status === "pending") job.status = "cancelled";
  else return problem(409, "not_pending", `the job is ${job.status}`);
  return [200, job];
}

function enqueue({ jobs }: ProducerApi, request: EnqueueBody) {
  const existing = [...jobs.values()].find(
    (job) => job.idempotency_key && job.idempotency_key === request.idempotency_key,
  );
  const now = new Date().toISOString();
  const job: JobResponse = existing ?? {
    job_id: randomUUID(),
    type: request.type,
    queue: request.queue ?? "default",
    status: "pending",
    priority: request.priority ?? 5,
    payload: request.payload ?? {},
    attempts: 0,
    max_attempts: request.max_attempts ?? 5,
    created_at: now,
    scheduled_at: request.scheduled_at ?? now,
    started_at: null,
    completed_at: null,
    worker: null,
    expires_at: request.expires_at ?? now,
    error: null,
    errors: [],
    dead_reason: null,
    partition_key: request.partition_key ?? null,
    partition_bucket: request.partition_key ? 0 : null,
    fair_key: request.fair_key ?? null,
    tags: (request.tags ?? []) as string[],
    idempotency_key: request.idempotency_key ?? null,
    output: null,
    chain: null,
    flow_id: null,
    culprit: null,
    superseded_by: null,
    schedule: null,
  };
  jobs.set(job.job_id, job);
  return { ...job, deduplicated: existing !== undefined };
}

function problem(status: number, code: string, detail: string): [number, object] {
  return [status, { type: `urn:sluice:problem:${code}`, title: "No", status, detail }];
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
