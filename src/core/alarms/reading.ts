// Compares a value with its threshold. The value is bad beyond the threshold. It is clear only if it is better than the
// threshold by a tenth. So a value that moves around the threshold does not fire and resolve an alarm again and again.

export interface Reading {
  value: number;
  threshold: number;
  isBad: boolean;
  isClear: boolean;
  summary: string;
}

const band = 0.1;

/** Adds the limit and its unit to the summary, unless the limit is 0. */
export function tooHigh(
  value: number,
  threshold: number,
  { summary, unit }: { summary: string; unit: "jobs" | "s" | "letters" | "errors" },
): Reading {
  return {
    value,
    threshold,
    isBad: value > threshold,
    isClear: value <= threshold * (1 - band),
    summary: threshold === 0 ? summary : `${summary}; the limit is ${threshold} ${unit}`,
  };
}

/** Counts are whole numbers, so the band is rounded. For small counts it is 0. */
export function tooLow({
  count,
  perMinute,
  minutes,
  summary,
}: {
  count: number;
  perMinute: number;
  minutes: number;
  summary: string;
}): Reading {
  const needed = Math.round(perMinute * minutes * 1e6) / 1e6; // 1.1 × 10 is a bit more than 11
  return {
    value: count / minutes,
    threshold: perMinute,
    isBad: count < needed,
    isClear: count >= Math.max(needed, Math.round(needed * (1 + band))),
    summary: `${summary}; expected at least ${Math.ceil(needed)}`,
  };
}

export function secondsBetween(from: Date, to: Date): number {
  return Math.max(0, Math.round((to.getTime() - from.getTime()) / 1000));
}
