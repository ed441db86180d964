// Finds API keys by their hash. Each isolate remembers them for some seconds, so an enqueue stays one round trip. A revoked
// key works for at most that long in isolates that know it. While the database sleeps on purpose no key is looked up that was
// looked up since it fell asleep: nobody has called an operation that revokes keys since then.
import type { ApiKey } from "../../../core/key.ts";
import { findKey } from "../../../core/sql/index.ts";
import type { Ports } from "../../../queue/ports.ts";
import type { AlarmClock } from "../../clock/alarm-clock.ts";
import type { IsolateState } from "../../isolate-state.ts";
import type { Settings } from "../../settings/env.ts";

export const revokedWithinMs = 10_000;
const unknownForMs = 3_000;
const maxRemembered = 1_000;

interface Invocation {
  ports: Ports;
  isolate: IsolateState;
  settings: Pick<Settings, "maxSleepMinutes">;
  alarmClock: Pick<AlarmClock, "read">;
}

export async function liveKey(invocation: Invocation, keyHash: string): Promise<ApiKey | undefined> {
  const { ports, isolate } = invocation;
  const { keys, unknownKeysUntilMs } = isolate;
  // Taken before the query: the key may be revoked while the answer is on its way.
  const nowMs = ports.clock.nowMs();
  const remembered = keys.get(keyHash);
  if (remembered && nowMs < remembered.untilMs) return remembered.key;
  if (nowMs < (unknownKeysUntilMs.get(keyHash) ?? 0)) return undefined;
  if (remembered && (await hasSleptSince(invocation, remembered.untilMs - revokedWithinMs)))
    return remembered.key;
  const key = await ports.db.run(findKey(keyHash));
  keys.delete(keyHash);
  if (key) remember(keys, keyHash, { key, untilMs: nowMs + revokedWithinMs });
  else remember(unknownKeysUntilMs, keyHash, nowMs + unknownForMs);
  return key;
}

async function hasSleptSince({ settings, alarmClock }: Invocation, sinceMs: number): Promise<boolean> {
  if (settings.maxSleepMinutes === 0) return false;
  const reading = await alarmClock.read();
  if (reading === null || reading === "unreachable" || !reading.isAsleep) return false;
  return reading.state.idleSinceMs !== null && reading.state.idleSinceMs < sinceMs;
}

/** In this isolate the revocation takes effect at once. */
export function forgetKey({ keys }: IsolateState, id: string): void {
  for (const [keyHash, { key }] of keys) if (key.id === id) keys.delete(keyHash);
}

/** Drops the oldest entry when there are too many. */
function remember<T>(entries: Map<string, T>, keyHash: string, value: T): void {
  entries.delete(keyHash);
  const [oldest] = entries.keys();
  if (entries.size >= maxRemembered && oldest !== undefined) entries.delete(oldest);
  entries.set(keyHash, value);
}
