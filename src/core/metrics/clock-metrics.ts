// The metrics of the clock. A scraper must not wake the database, so they say whether it sleeps.
import type { Family } from "./prometheus-text.ts";

export interface ClockGauges {
  isReachable: boolean;
  isAsleep: boolean;
  nextDueSeconds: number | null;
}

export function clockFamilies({ isReachable, isAsleep, nextDueSeconds }: ClockGauges): Family[] {
  return [
    {
      name: "sluice_clock_reachable",
      help: "1: the clock answers. 0: delayed jobs and retries wait for the cron.",
      type: "gauge",
      samples: [{ value: Number(isReachable) }],
    },
    {
      name: "sluice_database_asleep",
      help: "1: the crons leave the database alone because nothing is due. The other metrics are those of the last visit.",
      type: "gauge",
      samples: [{ value: Number(isAsleep) }],
    },
    {
      name: "sluice_next_due_seconds",
      help: "In how many seconds the clock wakes drains for the next job that it knows of. Negative: it is late.",
      type: "gauge",
      samples: nextDueSeconds === null ? [] : [{ value: nextDueSeconds }],
    },
  ];
}
