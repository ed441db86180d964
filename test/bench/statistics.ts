// Medians, percentiles and how far apart the samples lie.

export function percentile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN;
}

export function median(numbers: readonly number[]): number {
  return percentile(numbers, 0.5);
}
