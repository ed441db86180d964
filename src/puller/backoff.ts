// How long a puller waits after requests that brought nothing or failed.

const firstMs = 250;
const maxMs = 5_000;
/** The same as between two claims of a server that waits for a job. */
const betweenWaitsMs = 1_500;

/** Grows with each time in a row. A random half keeps many pullers from calling at the same moment. */
export function backoffMs(timesInRow: number): number {
  const ms = Math.min(firstMs * 2 ** Math.min(timesInRow - 1, 10), maxMs);
  return ms * (0.5 + Math.random() / 2);
}

/** After a claim that waited on the server and brought nothing. */
export function idlePauseMs(): number {
  return betweenWaitsMs * (0.8 + Math.random() * 0.4);
}
