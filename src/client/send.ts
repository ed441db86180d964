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
  headers?: Record<string, string>;
  /** Overrides the client's own value. */
  timeoutMs?: number | undefined;
  tryTimeoutMs?: number;
  /** If false, the first answer is final. Default true. */
  isRetried?: boolean;
  /** Ends the request and its retries. */
  signal?: AbortSignal | undefined;
}

export type Send = <Answer>(method: string, path: string, options?: SendOptions) => Promise<Answer>;

const passing = [0, 429, 502, 503, 504];
const firstBackoffMs = 200;
const maxBackoffMs = 5_000;
const keptTextLength = 200;

export function createSend(settings: SendSettings): Send {
  const { key, fetch: ownFetch, timeoutMs: ownTimeoutMs = 10_000 } = settings;
  const { tryTimeoutMs: ownTryTimeoutMs = ownTimeoutMs / 2 } = settings;
  const base = settings.url.replace(/\/+$/, "");
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };

  return async function send<Answer>(method: string, path: string, options: SendOptions = {}) {
    const {
      body,
      timeoutMs = ownTimeoutMs,
      tryTimeoutMs = ownTryTimeoutMs,
      isRetried = true,
      signal,
    } = options;
    const deadline = Date.now() + timeoutMs;
    const init = {
      method,
      headers: { ...headers, ...options.headers },
      ...(body && { body: JSON.stringify(body) }),
    };
    for (let failures = 0; ; failures++) {
      const tryMs = Math.max(Math.min(tryTimeoutMs, deadline - Date.now()), 1);
      // Called as a plain function, not as a method: workerd and browsers refuse another `this`.
      const outcome = await once<Answer>(ownFetch ?? fetch, base + path, {
        ...init,
        timeoutMs: tryMs,
        signal,
      });
      if (!(outcome instanceof SluiceRequestError)) return outcome;
      const backoffMs = Math.min(firstBackoffMs * 2 ** failures, maxBackoffMs);
      const waitMs = outcome.retryAfterMs + Math.random() * backoffMs;
      const isLast = !isRetried || signal?.aborted || Date.now() + waitMs >= deadline;
      if (isLast || !passing.includes(outcome.status)) throw outcome;
      await sleep(waitMs, signal);
    }
  };
}

/** Ends early when the signal is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    if (signal?.aborted) end();
    else signal?.addEventListener("abort", end);
  });
}

interface TryOptions extends Omit<RequestInit, "signal"> {
  timeoutMs: number;
  signal: AbortSignal | undefined;
}

/**
 * Reads the whole body, so that the time-out covers it and a truncated answer counts as no answer. Its timer and its
 * listener end with it: those of AbortSignal.timeout() and AbortSignal.any() would stay in a process that runs for long.
 */
async function once<Answer>(
  send: Fetch,
  url: string,
  { timeoutMs, signal, ...init }: TryOptions,
): Promise<Answer | SluiceRequestError> {
  const abortion = new AbortController();
  const abort = () => abortion.abort(signal?.reason);
  const timedOut = () => abortion.abort(new DOMException("The request timed out", "TimeoutError"));
  const timer = setTimeout(timedOut, timeoutMs);
  signal?.addEventListener("abort", abort);
  if (signal?.aborted) abort();
  try {
    const response = await send(url, { ...init, signal: abortion.signal });
    if (response.ok) return (await response.json()) as Answer;
    const retryAfterMs = msOf(response.headers.get("retry-after"));
    return new SluiceRequestError(await problemOf(response), { retryAfterMs });
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : String(cause);
    const problem = { type: "about:blank", title: "There was no answer", status: 0, detail };
    return new SluiceRequestError(problem, { cause });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
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
function msOf(retryAfter: string | null): number {
  if (!retryAfter) return 0;
  const seconds = Number(retryAfter);
  const ms = Number.isNaN(seconds) ? Date.parse(retryAfter) - Date.now() : seconds * 1000;
  return Math.max(ms, 0) || 0;
}
