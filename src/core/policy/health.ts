// Health: whether each kind of round is on time, by the end of its last round. A kind that never ran has the same time
// from the start of the deployment. The alarm round_overdue has the same limits.

export interface Heartbeats {
  /** By the database's clock, as are all of these. */
  at: Date;
  /** The first round of any kind, or the last migration while there is none. */
  runningSince: Date;
  /** Null if there was none. */
  lastEndedAt: Readonly<Record<WatchedKind, Date | null>>;
}

export type WatchedKind = "drain" | "reap" | "watch";
export type RoundCheck = "ok" | "starting" | "overdue";

/** By default reaps and watches run half as often as drains. */
export function overdueAfterSeconds(kind: WatchedKind, { drainSeconds }: { drainSeconds: number }): number {
  return kind === "drain" ? drainSeconds : 2 * drainSeconds;
}

/** After a sleep on purpose, the rounds have the same time from its end. */
export function checkRounds(
  { at, runningSince, lastEndedAt }: Heartbeats,
  { sleptMsAgo = null, ...limits }: { drainSeconds: number; sleptMsAgo?: number | null },
): Record<WatchedKind, RoundCheck> {
  const check = (kind: WatchedKind): RoundCheck => {
    const since = lastEndedAt[kind] ?? runningSince;
    const ageMs = Math.min(at.getTime() - since.getTime(), sleptMsAgo ?? Number.POSITIVE_INFINITY);
    if (ageMs > overdueAfterSeconds(kind, limits) * 1000) return "overdue";
    return lastEndedAt[kind] ? "ok" : "starting";
  };
  return { drain: check("drain"), reap: check("reap"), watch: check("watch") };
}
