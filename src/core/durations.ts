// Percentiles from histograms of how long jobs took.

/** The number of jobs by bucket. Bucket 0 is below the first bound, bucket 1 between the first and the second, and so on. */
export type BucketCounts = Readonly<Record<string, number>>;

export interface Percentiles {
  jobs: number;
  p50Seconds: number;
  p95Seconds: number;
}

/** Null: there are no jobs. */
export function percentilesOf(
  counts: BucketCounts | undefined,
  bounds: readonly number[],
): Percentiles | null {
  const buckets = Object.entries(counts ?? {})
    .map(([bucket, jobs]) => ({ bucket: Number(bucket), jobs }))
    .toSorted((a, b) => a.bucket - b.bucket);
  const jobs = buckets.reduce((sum, bucket) => sum + bucket.jobs, 0);
  if (jobs === 0) return null;
  const secondsAt = (share: number) => {
    let below = 0;
    for (const { bucket, jobs: inBucket } of buckets) {
      if (below + inBucket >= share * jobs) return within(bucket, (share * jobs - below) / inBucket, bounds);
      below += inBucket;
    }
    return bounds.at(-1) ?? 0;
  };
  return { jobs, p50Seconds: secondsAt(0.5), p95Seconds: secondsAt(0.95) };
}

/** As if the jobs of a bucket were spread evenly over it. The last bucket has no end, so its start stands for it. */
function within(bucket: number, share: number, bounds: readonly number[]): number {
  const low = bounds[bucket - 1] ?? 0;
  const high = bounds[bucket] ?? low;
  return low + share * (high - low);
}
