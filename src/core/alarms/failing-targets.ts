// The reading of target_failing: alarm targets that do not take their notices.
import type { TargetHealth } from "./alarm.ts";
import { type Reading, secondsBetween, tooHigh } from "./reading.ts";

/** A target that answered 410 is bad at once. One that only fails has some time to recover. */
export function readFailingTargets(
  targets: readonly TargetHealth[],
  { at, limit }: { at: Date; limit: number },
): Reading {
  const gone = targets.filter(({ goneSince }) => goneSince !== null);
  const problems = targets.flatMap(({ name, goneSince, failingSince }) => {
    if (goneSince) return [`the target ${name} answered 410 and is switched off`];
    return failingSince ? [`the target ${name} has failed for ${secondsBetween(failingSince, at)} s`] : [];
  });
  const summary = problems.join(", ") || "all alarm targets accept their notices";
  const since = (gone.length > 0 ? gone : targets).map(
    (target) => target.goneSince ?? target.failingSince ?? at,
  );
  const longest = Math.max(0, ...since.map((from) => secondsBetween(from, at)));
  const reading = tooHigh(longest, gone.length > 0 ? 0 : limit, { summary, unit: "s" });
  return { ...reading, isBad: gone.length > 0 || reading.isBad, isClear: problems.length === 0 };
}
