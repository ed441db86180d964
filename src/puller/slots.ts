// The places for handlers. A claim takes free slots before it is sent, so it never brings more work than there is room for.

export interface Slots {
  /** Waits for a free slot and takes up to `most`. Takes none once the signal is aborted. */
  take(most: number): Promise<number>;
  give(count: number): void;
}

export function createSlots(count: number, signal: AbortSignal): Slots {
  let free = count;
  const waiting: (() => void)[] = [];
  const wakeAll = () => {
    for (const wake of waiting.splice(0)) wake();
  };
  signal.addEventListener("abort", wakeAll, { once: true });
  return {
    async take(most) {
      while (free === 0 && !signal.aborted) await new Promise<void>((resolve) => waiting.push(resolve));
      const taken = signal.aborted ? 0 : Math.min(free, most);
      free -= taken;
      return taken;
    },
    give(returned) {
      free += returned;
      if (free > 0) wakeAll();
    },
  };
}
