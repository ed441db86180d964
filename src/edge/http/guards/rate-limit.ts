// How often a key may call. Each isolate counts by the key's own limit, in windows of a second. There may be many
// isolates, so the platform's binding, where there is one, also counts for a whole location; it knows one number for all
// keys (wrangler.toml), which stands for the default limit. A key of a lower limit is held to its own by each isolate,
// and to that number by a location.
import { SluiceError } from "../../../core/errors.ts";
import { type ApiKey, defaultRateLimitPerSecond } from "../../../core/key.ts";
import type { Ports } from "../../../queue/ports.ts";

/** https://developers.cloudflare.com/workers/runtime-apis/bindings/rate-limit/ */
interface RateLimiter {
  limit(options: { key: string }): Promise<{ success: boolean }>;
}

/** The shorter of the two periods that the platform has; it does not tell which one was set. */
const platformPeriodSeconds = 10;

/** Of the current second only, so it is as small as the number of keys that are in use. */
const calls = { second: 0, byKey: new Map<string, number>() };

export async function checkRate(ports: Ports, key: ApiKey): Promise<void> {
  const count = countCall(ports, key);
  if (count > key.rateLimitPerSecond) {
    throw new SluiceError("rate_limited", `the key may call ${key.rateLimitPerSecond} times a second`);
  }
  const { RATE_LIMITER: limiter } = ports.env as { RATE_LIMITER?: RateLimiter };
  if (limiter && !(await limiter.limit({ key: counterOf(key, count) })).success) {
    throw new SluiceError("rate_limited", "the key was used too often in the last seconds", {
      retryAfterSeconds: platformPeriodSeconds,
    });
  }
}

function countCall(ports: Ports, key: ApiKey): number {
  const second = Math.floor(ports.clock.nowMs() / 1000);
  if (second !== calls.second) {
    calls.second = second;
    calls.byKey.clear();
  }
  const count = (calls.byKey.get(key.id) ?? 0) + 1;
  calls.byKey.set(key.id, count);
  return count;
}

/** A key that may call more often than by default has as many counters as its limit is worth, and takes turns. */
function counterOf(key: ApiKey, count: number): string {
  const counters = Math.ceil(key.rateLimitPerSecond / defaultRateLimitPerSecond);
  return counters > 1 ? `${key.id}/${count % counters}` : key.id;
}
