// Random numbers from a seed, so that a load or a fault plan can be repeated.

export interface SeededRandom {
  /** A number in [0, 1). */
  next(): number;
  /** An integer from `from` to `to`, both included. */
  int(from: number, to: number): number;
  isLikely(probability: number): boolean;
  pick<T>(choices: readonly [T, ...T[]]): T;
}

export function createRandom(seed: number): SeededRandom {
  let state = seed | 0;
  // mulberry32
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const int = (from: number, to: number) => from + Math.floor(next() * (to - from + 1));
  return {
    next,
    int,
    isLikely: (probability) => next() < probability,
    pick: (choices) => choices[int(0, choices.length - 1)] ?? choices[0],
  };
}
