// A number against its threshold. It is bad past the threshold, and clearly good only a tenth on its other side: so a
// number that wavers around the threshold neither fires nor resolves an alarm over and over.

export interface Reading {
  value: number;
  threshold: number;
  isBad: boolean;
  isClear: boolean;
  summary: string;
}

const band = 0.1;

/** `summary` says what was seen; the limit is added in its unit, where there is one to speak of. */
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

/** Whole things are counted, so the band is rounded: among a handful there is none. */
export function tooLow(seen: {
  count: number;
  perMinute: number;
  minutes: number;
  summary: string;
}): Reading {
  const needed = Math.round(seen.perMinute * seen.minutes * 1e6) / 1e6; // 1.1 × 10 is a bit more than 11
  return {
    value: seen.count / seen.minutes,
    threshold: seen.perMinute,
    isBad: seen.count < needed,
    isClear: seen.count >= Math.max(needed, Math.round(needed * (1 + band))),
    summary: `${seen.summary}; at least ${Math.ceil(needed)} should be`,
  };
}
