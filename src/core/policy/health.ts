// Health: whether each kind of round is on time, by when its last one ended. What never ran is given some time
// after the start.

export interface Heartbeats {
  /** By the database's clock, as all of these. */
  at: Date;
  /** The first round of any kind, or before it the last migration. */
  runningSince: Date;
  /** Null: there was none. */
  lastEndedAt: Readonly<Record<WatchedKind, Date | null>>;
}

export type WatchedKind = keyof typeof overdueSeconds;
export type RoundCheck = "ok" | "starting" | "overdue";

/** Three rounds, as the crons are set by default. */
const overdueSeconds = { drain: 180, reap: 360, watch: 360 } as const;

export function checkRounds({ at, runningSince, lastEndedAt }: Heartbeats): Record<WatchedKind, RoundCheck> {
  const check = (kind: WatchedKind): RoundCheck => {
    const since = lastEndedAt[kind] ?? runningSince;
    if (at.getTime() - since.getTime() > overdueSeconds[kind] * 1000) return "overdue";
    return lastEndedAt[kind] ? "ok" : "starting";
  };
  return { drain: check("drain"), reap: check("reap"), watch: check("watch") };
}
