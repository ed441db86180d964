// A limit for several steps together.

export interface Deadline {
  /** Rejects when the time is over, even if the step never ends. */
  limit<T>(step: Promise<T>): Promise<T>;
}

export function createDeadline(ms: number): Deadline {
  const endsAtMs = Date.now() + ms;
  return {
    async limit(step) {
      const { promise: late, reject } = Promise.withResolvers<never>();
      const error = new Error(`no answer within ${ms} ms`);
      const timer = setTimeout(() => reject(error), Math.max(endsAtMs - Date.now(), 0));
      try {
        return await Promise.race([step, late]);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}
