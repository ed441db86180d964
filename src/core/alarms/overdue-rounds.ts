// The reading of round_overdue: rounds that do not come or fail, and leases that wait for the reaper.
import { overdueAfterSeconds } from "../policy/health.ts";
import type { Snapshot } from "../snapshot.ts";
import { type Reading, secondsBetween } from "./reading.ts";

export function readOverdueRounds(
  { at, rounds, runningSince, expiredLeaseSeconds }: Snapshot,
  limitSeconds: number,
): Reading {
  const kinds = (["drain", "reap"] as const).map((kind) => {
    const last = rounds.find((round) => round.kind === kind);
    return {
      kind,
      hasFailed: last?.hasFailed ?? false,
      seconds: secondsBetween(last?.endedAt ?? runningSince ?? at, at),
      limit: overdueAfterSeconds(kind, { drainSeconds: limitSeconds }),
    };
  });
  const [worst = { seconds: 0, limit: limitSeconds }] = kinds.toSorted(
    (a, b) => b.seconds / b.limit - a.seconds / a.limit,
  );
  const problems = [
    ...kinds
      .filter(({ seconds, limit }) => seconds > limit)
      .map(({ kind, seconds, limit }) => `no ${kind} round for ${seconds} s (the limit is ${limit} s)`),
    ...kinds.filter(({ hasFailed }) => hasFailed).map(({ kind }) => `the last ${kind} round failed`),
    ...(expiredLeaseSeconds > overdueAfterSeconds("reap", { drainSeconds: limitSeconds })
      ? [`leases that ran out have waited for a reap round for ${Math.round(expiredLeaseSeconds)} s`]
      : []),
  ];
  return {
    value: worst.seconds,
    threshold: worst.limit,
    isBad: problems.length > 0,
    isClear: problems.length === 0,
    summary: problems.join(", ") || "drain and reap rounds are on time",
  };
}
