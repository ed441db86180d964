// How often a key may call (X2). The platform's binding counts for a whole location, but by one limit for all keys; so
// each isolate also counts by the key's own, in windows of a second.
import type { ApiKey } from "../../core/key.ts";
import type { Queue } from "../../queue/ports.ts";

/** https://developers.cloudflare.com/workers/runtime-apis/bindings/rate-limit/ */
interface RateLimiter {
  limit(options: { key: string }): Promise<{ success: boolean }>;
}

/** Of the current second only, so it is as small as the number of keys that are in use. */
const calls = { second: 0, byKey: new Map<string, number>() };

export async function isWithinRate(queue: Queue, key: ApiKey): Promise<boolean> {
  const second = Math.floor(queue.clock.nowMs() / 1000);
  if (second !== calls.second) {
    calls.second = second;
    calls.byKey.clear();
  }
  const count = (calls.byKey.get(key.id) ?? 0) + 1;
  calls.byKey.set(key.id, count);
  if (count > key.rateLimitPerSecond) return false;
  const { RATE_LIMITER: limiter } = queue.env as { RATE_LIMITER?: RateLimiter };
  return limiter ? (await limiter.limit({ key: key.id })).success : true;
}
