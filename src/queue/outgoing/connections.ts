// The connections of one invocation that handlers may hold. Cloudflare opens six at a time and lets every further request
// wait, while its time-out runs already. So a job that needs one starts when one is free.

/**
 * Of six. Two are left for the database: a lease that cannot be extended, because endpoints are slow, would be lost with its
 * jobs.
 */
const maxConnections = 4;

export interface Connections {
  /** Resolves in the order of the calls. The returned function gives the connection back. */
  take(): Promise<() => void>;
}

export function createConnections(): Connections {
  let free = maxConnections;
  const waiting: (() => void)[] = [];
  const giveBack = () => {
    const next = waiting.shift();
    if (next) next();
    else free++;
  };
  return {
    async take() {
      if (free > 0) free--;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      return giveBack;
    },
  };
}
