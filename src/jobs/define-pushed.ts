// definePushedJob: the handler is an endpoint of the user's own. The request is signed by the Standard Webhooks rules;
// its answer decides what becomes of the job. The target is the deployment's, never the payload's.
import { FatalError, RetryableError } from "../core/errors.ts";
import type { Json } from "../core/job.ts";
import { refusalOf } from "../core/policy/outgoing-target.ts";
import type { HandlerContext } from "../queue/ports.ts";
import { signWebhook, type WebhookSecret } from "../queue/webhook.ts";
import { defineJob, type JobDefinition, type PayloadOptions, type PayloadSchema } from "./define.ts";

export interface PushedJobOptions<Schema extends PayloadSchema, Env = unknown>
  extends PayloadOptions<Schema> {
  url: string | ((env: Env) => string);
  /** `whsec_…`; two while it is rotated. */
  secret: WebhookSecret | readonly WebhookSecret[] | ((env: Env) => WebhookSecret | readonly WebhookSecret[]);
  /** Statuses after which no later attempt can succeed. 410 always is one. */
  fatalStatuses?: readonly number[];
}

const maxOutputBytes = 16 * 1024;
const maxErrorBytes = 500;

export function definePushedJob<Schema extends PayloadSchema, Env = unknown>(
  type: string,
  { url, secret, fatalStatuses = [], ...options }: PushedJobOptions<Schema, Env>,
): JobDefinition<Schema> {
  return defineJob<Schema, Env>(type, {
    subrequests: 1,
    ...options,
    run: async (payload, context) => {
      const target = typeof url === "function" ? url(context.env) : url;
      const refusal = refusalOf(target, { allowPrivate: allowsPrivate(context.env) });
      if (refusal) throw new FatalError(`the target of "${type}" ${refusal}`);
      const secrets = [typeof secret === "function" ? secret(context.env) : secret].flat();
      const response = await send(target, { type, payload, context, secrets });
      return answerOf(response, {
        type,
        isFatal: (status) => status === 410 || fatalStatuses.includes(status),
      });
    },
  });
}

async function send<Payload>(
  target: string,
  {
    type,
    payload,
    context,
    secrets,
  }: { type: string; payload: Payload; context: HandlerContext; secrets: readonly WebhookSecret[] },
): Promise<Response> {
  const now = Date.now();
  const body = JSON.stringify({ type, timestamp: new Date(now).toISOString(), data: payload });
  const signature = await signWebhook({ id: context.jobId, timestampSeconds: now / 1000, body, secrets });
  const trace: Record<string, string> = context.traceparent ? { traceparent: context.traceparent } : {};
  return fetch(target, {
    method: "POST",
    headers: {
      ...signature,
      ...trace,
      "content-type": "application/json",
      "sluice-attempt": String(context.attempt),
      "sluice-lease-generation": context.leaseGeneration,
    },
    body,
    redirect: "manual",
    signal: context.signal,
  });
}

async function answerOf(
  response: Response,
  { type, isFatal }: { type: string; isFatal(status: number): boolean },
): Promise<Json> {
  if (response.ok) return outputOf(response);
  const said = await readAtMost(response, maxErrorBytes);
  const message = `the endpoint of "${type}" answered ${response.status}${said ? `: ${said}` : ""}`;
  if (isFatal(response.status)) throw new FatalError(message);
  const retryInSeconds = retryAfterSeconds(response.headers.get("retry-after"), Date.now());
  throw new RetryableError(message, retryInSeconds === undefined ? {} : { retryInSeconds });
}

/** A small JSON body is the job's output; anything else is not kept. */
async function outputOf(response: Response): Promise<Json> {
  const isJson = response.headers.get("content-type")?.includes("json");
  const text = await readAtMost(response, maxOutputBytes + 1);
  if (!isJson || text.length > maxOutputBytes) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** An endpoint may answer without end: what is past the limit is not read. */
async function readAtMost(response: Response, bytes: number): Promise<string> {
  const reader = response.body?.getReader();
  if (!reader) return "";
  const decoder = new TextDecoder();
  let text = "";
  for (let read = 0; read < bytes; ) {
    const { done, value } = await reader.read();
    if (done) break;
    read += value.byteLength;
    text += decoder.decode(value, { stream: true });
  }
  await reader.cancel();
  return text.slice(0, bytes);
}

/** Seconds, or a date. */
export function retryAfterSeconds(header: string | null, nowMs: number): number | undefined {
  if (!header) return undefined;
  const seconds = /^\d+$/.test(header.trim()) ? Number(header) : (Date.parse(header) - nowMs) / 1000;
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0), 86_400) : undefined;
}

function allowsPrivate(env: unknown): boolean {
  return (
    (env as { SLUICE_ALLOW_PRIVATE_TARGETS?: string } | undefined)?.SLUICE_ALLOW_PRIVATE_TARGETS === "true"
  );
}
