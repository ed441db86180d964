// Keys by their hash, kept for some seconds by each isolate: an enqueue stays one round trip, and a revocation is late by
// no more than that. Plain data; known and unknown ones apart, so that guesses do not push out the keys in use.
import type { ApiKey } from "../../../core/key.ts";
import { findKey } from "../../../core/sql/index.ts";
import type { Ports } from "../../../queue/ports.ts";

/** A revoked key works at most so much longer, wherever it is used. */
export const revokedWithinMs = 10_000;
const unknownForMs = 3_000;
const maxKept = 1_000;

const known = new Map<string, { key: ApiKey; untilMs: number }>();
const unknownUntilMs = new Map<string, number>();

export async function liveKey(ports: Ports, keyHash: string): Promise<ApiKey | undefined> {
  // Before the query: what it answers may be revoked while the answer is on its way.
  const nowMs = ports.clock.nowMs();
  const kept = known.get(keyHash);
  if (kept && nowMs < kept.untilMs) return kept.key;
  if (nowMs < (unknownUntilMs.get(keyHash) ?? 0)) return undefined;
  const key = await ports.db.run(findKey(keyHash));
  known.delete(keyHash);
  if (key) keep(known, keyHash, { key, untilMs: nowMs + revokedWithinMs });
  else keep(unknownUntilMs, keyHash, nowMs + unknownForMs);
  return key;
}

/** In this isolate a revocation holds at once. */
export function forgetKey(id: string): void {
  for (const [keyHash, { key }] of known) if (key.id === id) known.delete(keyHash);
}

/** The one that was kept first makes room. */
function keep<T>(kept: Map<string, T>, keyHash: string, value: T): void {
  kept.delete(keyHash);
  const [oldest] = kept.keys();
  if (kept.size >= maxKept && oldest !== undefined) kept.delete(oldest);
  kept.set(keyHash, value);
}
