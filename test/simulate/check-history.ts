// The laws of partition keys, checked on every attempt of a simulation: nothing is lost or completed twice, the jobs of a key
// run in order and one at a time, and a worker that lost its lease changes nothing.
import { type Attempt, type History, isCompletion } from "./history.ts";

/** Each violation as a sentence. */
export function findViolations({ attempts, enqueued }: Pick<History, "attempts" | "enqueued">): string[] {
  const byKey = Map.groupBy(attempts, ({ key }) => key);
  return [...enqueued].flatMap(([key, jobs]) => {
    const ofKey = byKey.get(key) ?? [];
    return [
      ...findLost(key, jobs, ofKey),
      ...findDisorder(ofKey),
      ...findOverlaps(ofKey),
      ...findStale(ofKey),
    ];
  });
}

function findLost(key: string, jobs: number, attempts: readonly Attempt[]): string[] {
  const completions = Map.groupBy(attempts.filter(isCompletion), ({ place }) => place);
  return Array.from({ length: jobs }, (_, place) => completions.get(place)?.length ?? 0).flatMap(
    (times, place) => (times === 1 ? [] : [`${nameOf({ key, place })} was completed ${times} times`]),
  );
}

/**
 * Whatever starts, the job before it in its key has been completed: the database says so, or the same worker did it just
 * before under the same lease. (Should it lose that lease before it settles, both jobs run again.)
 */
function findDisorder(attempts: readonly Attempt[]): string[] {
  const byPlace = Map.groupBy(attempts, ({ place }) => place);
  return attempts.flatMap((attempt) => {
    const isDone = (before: Attempt) =>
      before.outcome === "complete" &&
      isBefore(before.endedAt, attempt.startedAt) &&
      (before.isApplied === true || before.generation === attempt.generation);
    if (attempt.place === 0 || byPlace.get(attempt.place - 1)?.some(isDone)) return [];
    return [`${nameOf(attempt)} was started by ${attempt.worker} before the job before it was completed`];
  });
}

/** While a worker has a key, another one may start with it only when the first one's lease has run out. */
function findOverlaps(attempts: readonly Attempt[]): string[] {
  const open: Attempt[] = [];
  return attempts.flatMap((attempt) => {
    const { startedAt, generation, worker } = attempt;
    const unended = open.filter(({ endedAt }) => !isBefore(endedAt, startedAt));
    open.splice(0, open.length, ...unended, attempt);
    return unended
      .filter((other) => !(startedAt.ms >= other.leaseExpiresMs && generation > other.generation))
      .map((other) => `${nameOf(attempt)} was started by ${worker} while ${other.worker} had its key`);
  });
}

/** A job that was claimed again is never settled with an older lease. */
function findStale(attempts: readonly Attempt[]): string[] {
  const newest = new Map<number, bigint>();
  for (const { place, generation } of attempts)
    newest.set(place, generation > (newest.get(place) ?? 0n) ? generation : (newest.get(place) ?? 0n));
  return attempts
    .filter(({ place, generation, isApplied }) => isApplied && generation < (newest.get(place) ?? 0n))
    .filter(({ outcome }) => outcome === "complete")
    .map((attempt) => `${nameOf(attempt)} was settled by ${attempt.worker} with an old lease`);
}

function isBefore(some: Attempt["endedAt"] | undefined, other: Attempt["startedAt"]): boolean {
  return some !== null && some !== undefined && some.order < other.order;
}

function nameOf({ key, place }: Pick<Attempt, "key" | "place">): string {
  return `job ${place} of key ${key}`;
}
