// The work of one invocation: what it does before its answer, and what it leaves to waitUntil.

export interface ExecutionContext {
  waitUntil(work: Promise<unknown>): void;
}

export interface InvocationWork extends ExecutionContext {
  /** Resolves when everything has ended that was left to waitUntil. */
  ended(): Promise<void>;
}

export function trackWork(context: ExecutionContext): InvocationWork {
  const running = new Set<Promise<unknown>>();
  return {
    waitUntil(work) {
      context.waitUntil(work);
      running.add(work);
      const remove = () => void running.delete(work);
      work.then(remove, remove);
    },
    async ended() {
      while (running.size > 0) await Promise.allSettled(running);
    },
  };
}
