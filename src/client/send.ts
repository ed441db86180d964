// Sends one request with retries. It retries timeouts and 429, 502, 503 and 504 until the deadline, after a backoff with
// full jitter, and honours `Retry-After`. Any other answer is final.
import type { Problem } from "../contract/problem.ts";
import { SluiceRequestError } from "./request-error.ts";

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

interface SendSettings {
  url: string;
  key: string;
  fetch?: Fetch;
  timeoutMs?: number;
  tryTimeoutMs?: number;
}

interface SendOptions {
  body?: object;
  /** Overrides the client's own value. */
  timeoutMs?: number | undefined;
}

export type Send = <Answer>(method: string, path: string, options?: SendOptions) => Promise<Answer>;

const passing = [0, 429, 502, 503, 504];
const firstBackoffMs = 200;
const maxBackoffMs = 5_000;
const keptTextLength = 200;

export function createSend(settings: SendSettings): Send {
  const { key, fetch: ownFetch, timeoutMs: ownTimeoutMs = 10_000 } = settings;
  const { tryTimeoutMs = ownTimeoutMs / 2 } = settings;
  const base = settings.url.replace(/\/+$/, "");
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };

  return async function send<Answer>(
    method: string,
    path: string,
    { body, timeoutMs = ownTimeoutMs }: SendOptions = {},
  ) {
    const deadline = Date.now() + timeoutMs;
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    for (let failures = 0; ; failures++) {
      const tryMs = Math.max(Math.min(tryTimeoutMs, deadline - Date.now()), 1);
      // Called as a plain function, not as a method: workerd and browsers refuse another `this`.
      const outcome = await once<Answer>(ownFetch ?? fetch, base + path, {
        ...init,
        signal: AbortSignal.timeout(Math.ceil(tryMs)),
      });
      if (!(outcome instanceof Failure)) return outcome;
      const backoffMs = Math.min(firstBackoffMs * 2 ** failures, maxBackoffMs);
      const waitMs = outcome.retryAfterMs + Math.random() * backoffMs;
      if (!passing.includes(outcome.error.status) || Date.now() + waitMs >= deadline) throw outcome.error;
      await sleep(waitMs);
    }
  };
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

class Failure {
  readonly error: SluiceRequestError;
  readonly retryAfterMs: number;

  constructor(error: SluiceRequestError, retryAfter?: string | null) {
    this.error = error;
    this.retryAfterMs = msOf(retryAfter);
  }
}

/** Reads the whole body, so that the time-out covers it and a truncated answer counts as no answer. */
async function once<Answer>(send: Fetch, url: string, init: RequestInit): Promise<Answer | Failure> {
  try {
    const response = await send(url, init);
    if (response.ok) return (await response.json()) as Answer;
    return new Failure(
      new SluiceRequestError(await problemOf(response)),
      response.headers.get("retry-after"),
    );
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : String(cause);
    const problem = { type: "about:blank", title: "There was no answer", status: 0, detail };
    return new Failure(new SluiceRequestError(problem, { cause }));
  }
}

async function problemOf(response: Response): Promise<Problem> {
  const { status, statusText } = response;
  const text = await response.text();
  const other = { type: "about:blank", title: statusText || `HTTP ${status}` };
  try {
    return { ...other, detail: "", ...JSON.parse(text), status };
  } catch {
    return { ...other, detail: text.slice(0, keptTextLength), status };
  }
}

/** `Retry-After` is a number of seconds or a date. */
function msOf(retryAfter?: string | null): number {
  if (!retryAfter) return 0;
  const seconds = Number(retryAfter);
  const ms = Number.isNaN(seconds) ? Date.parse(retryAfter) - Date.now() : seconds * 1000;
  return Math.max(ms, 0) || 0;
}
