// The limits of job types, as SQL functions take them. The database does not store them: the deployment's code has them.

export interface LimitedType {
  type: string;
  limits?: { concurrency?: number; rate?: { limit: number; perSeconds: number } };
}

/** Only the types with limits. Null if there are none: then a claim does not read limits at all. */
export function packLimits(types: readonly LimitedType[]): string | null {
  const limited = types.flatMap(({ type, limits }) =>
    limits?.concurrency || limits?.rate
      ? [
          [
            type,
            { concurrency: limits.concurrency, rate: limits.rate?.limit, seconds: limits.rate?.perSeconds },
          ] as const,
        ]
      : [],
  );
  return limited.length > 0 ? JSON.stringify(Object.fromEntries(limited)) : null;
}
