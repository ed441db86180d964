// Handlers that run until the test lets them end.
import type { Handler, PulledJob } from "../../src/puller/puller.ts";

export interface HeldHandlers {
  handlers: { work: Handler };
  /** The jobs whose handlers were started. */
  jobs: PulledJob[];
  /** Lets the handlers that were started return "late". */
  endAll(): void;
}

export function heldHandlers(): HeldHandlers {
  const jobs: PulledJob[] = [];
  const ends: (() => void)[] = [];
  const work = (_: object, job: PulledJob) => {
    jobs.push(job);
    return new Promise<string>((resolve) => ends.push(() => resolve("late")));
  };
  return {
    handlers: { work },
    jobs,
    endAll() {
      for (const end of ends) end();
    },
  };
}
