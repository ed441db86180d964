// definePushedJob: the handler is the user's own HTTP endpoint. The request is signed as a Standard Webhook, and its
// answer decides the job's outcome. The target URL comes from the deployment, never from the payload.
import { FatalError, RetryableError } from "../core/errors.ts";
import type { Json } from "../core/job.ts";
import { refusalOf } from "../core/policy/outgoing-target.ts";
import { readAtMost, retryAfterSeconds } from "../queue/outgoing/answer.ts";
import { signWebhook, type WebhookSecret } from "../queue/outgoing/sign-webhook.ts";
import type { HandlerContext } from "../queue/ports.ts";
import { defineJob, type JobDefinition, type PayloadOptions, type PayloadSchema } from "./define.ts";

export interface PushedJobOptions<Schema extends PayloadSchema, Env = unknown>
  extends PayloadOptions<Schema> {
  url: string | ((env: Env) => string);
  /** `whsec_…`. Give two while you rotate it. */
  secret: WebhookSecret | readonly WebhookSecret[] | ((env: Env) => WebhookSecret | readonly WebhookSecret[]);
  /** Statuses that make the job dead at once. 410 always does. */
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

/** A small JSON body becomes the job's output. Any other body is ignored. */
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

function allowsPrivate(env: unknown): boolean {
  return (
    (env as { SLUICE_ALLOW_PRIVATE_TARGETS?: string } | undefined)?.SLUICE_ALLOW_PRIVATE_TARGETS === "true"
  );
}
