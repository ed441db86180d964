// definePushedJob: the handler is the user's own HTTP endpoint. The request is signed as a Standard Webhook, and its
// answer decides the job's outcome. The target URL comes from the deployment, never from the payload.
import { FatalError, RetryableError } from "../core/errors.ts";
import type { Json } from "../core/job.ts";
import type { NoSlots, Slots } from "../core/typed-job.ts";
import { signWebhook, type WebhookSecret } from "../queue/outgoing/sign-webhook.ts";
import type { Answer, RunningJob } from "../queue/ports.ts";
import { type JobDefinition, withOptions } from "./define.ts";
import type { PayloadOptions, PayloadSchema, TypeDefinition } from "./define-type.ts";
import type { HandlerOptions, TypeOptions } from "./type-options.ts";
import type { WorkerEnv } from "./worker-env.ts";

export interface PushedJobOptions<Env = WorkerEnv> extends HandlerOptions {
  url: string | ((env: Env) => string);
  /** `whsec_…`. Give two while you rotate it. */
  secret: WebhookSecret | readonly WebhookSecret[] | ((env: Env) => WebhookSecret | readonly WebhookSecret[]);
  /** Statuses that make the job dead at once. 410 always does. */
  fatalStatuses?: readonly number[];
}

const maxOutputBytes = 16 * 1024;

export function definePushedJob<Schema extends PayloadSchema, Output, After extends Slots, Env = WorkerEnv>(
  type: TypeDefinition<Schema, Output, After>,
  options: PushedJobOptions<Env>,
): JobDefinition<Schema, Output, After>;
export function definePushedJob<Schema extends PayloadSchema, Env = WorkerEnv>(
  type: string,
  options: PayloadOptions<Schema> & TypeOptions & PushedJobOptions<Env>,
): JobDefinition<Schema, Json, NoSlots>;
export function definePushedJob(
  name: string | TypeDefinition,
  { url, secret, fatalStatuses = [], ...options }: TypeOptions & PushedJobOptions<never>,
): JobDefinition {
  const declared = withOptions(name, { subrequests: 1, ...options });
  const { type } = declared;
  const isFatal = (status: number) => status === 410 || fatalStatuses.includes(status);
  return {
    ...declared,
    work: {
      kind: "single",
      needsConnection: true,
      async run(job) {
        const data = declared.parse(job.payload);
        const env = job.context.env as never;
        const target = typeof url === "function" ? url(env) : url;
        const secrets = [typeof secret === "function" ? secret(env) : secret].flat();
        return declared.outputOf(
          toOutput(await push(target, { type, data, job, secrets }), { type, isFatal }),
        );
      },
    },
  };
}

async function push(
  url: string,
  { type, data, job, secrets }: { type: string; data: unknown; job: RunningJob; secrets: readonly string[] },
): Promise<Answer> {
  const { context, ports } = job;
  const nowMs = ports.clock.nowMs();
  const body = JSON.stringify({ type, timestamp: new Date(nowMs).toISOString(), data });
  const signature = await signWebhook({ id: context.jobId, timestampSeconds: nowMs / 1000, body, secrets });
  const headers = {
    ...signature,
    ...(context.traceparent && { traceparent: context.traceparent }),
    "content-type": "application/json",
    "sluice-attempt": String(context.attempt),
    "sluice-lease-generation": context.leaseGeneration,
  };
  const { signal } = context;
  return ports.sender.send({ method: "POST", url, headers, body, signal, maxJsonBytes: maxOutputBytes });
}

/** A small JSON body is the job's output. Anything else is not kept. */
function toOutput(
  { status, errorText, retryInSeconds, json }: Answer,
  { type, isFatal }: { type: string; isFatal(status: number): boolean },
): Json {
  if (status >= 200 && status < 300) return json === undefined ? null : parseOrNull(json);
  const message = `the endpoint of "${type}" answered ${status}${errorText ? `: ${errorText}` : ""}`;
  if (isFatal(status)) throw new FatalError(message);
  throw new RetryableError(message, retryInSeconds === undefined ? {} : { retryInSeconds });
}

function parseOrNull(json: string): Json {
  try {
    return JSON.parse(json);
  } catch {
    return null;
  }
}
