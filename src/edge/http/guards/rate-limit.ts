// How often a key may call. Each isolate counts by the key's own limit, second by second. There may be many isolates, so
// the platform's binding RATE_LIMITER counts as well, for a whole location. It has one limit for all keys (wrangler.toml),
// which stands for the default limit of a key. A key with a lower limit is held to its own limit by each isolate only.
import { SluiceError } from "../../../core/errors.ts";
import { type ApiKey, defaultRateLimitPerSecond } from "../../../core/key.ts";
import type { AppEnv } from "../app-env.ts";

/** The platform allows 10 s or 60 s and does not say which one is set. */
const platformPeriodSeconds = 10;

/** A key, or whoever else is counted. */
type Counted = Pick<ApiKey, "id" | "rateLimitPerSecond">;
type Invocation = Pick<AppEnv["Bindings"], "ports" | "settings" | "isolate">;

export async function checkRate(invocation: Invocation, key: Counted, what = "this key"): Promise<void> {
  const { rateLimiter } = invocation.settings;
  const count = countCall(invocation, key);
  if (count > key.rateLimitPerSecond) {
    throw new SluiceError(
      "rate_limited",
      `the limit of ${what} is ${key.rateLimitPerSecond} calls per second`,
    );
  }
  if (rateLimiter && !(await rateLimiter.limit({ key: counterFor(key, count) })).success) {
    throw new SluiceError("rate_limited", `${what} made too many calls in the last seconds`, {
      retryAfterSeconds: platformPeriodSeconds,
    });
  }
}

function countCall({ ports, isolate: { calls } }: Invocation, key: Counted): number {
  const second = Math.floor(ports.clock.nowMs() / 1000);
  if (second !== calls.second) {
    calls.second = second;
    calls.byKey.clear();
  }
  const count = (calls.byKey.get(key.id) ?? 0) + 1;
  calls.byKey.set(key.id, count);
  return count;
}

/** A key with n times the default limit takes turns among n of the platform's counters. */
function counterFor(key: Counted, count: number): string {
  const counters = Math.ceil(key.rateLimitPerSecond / defaultRateLimitPerSecond);
  return counters > 1 ? `${key.id}/${count % counters}` : key.id;
}
