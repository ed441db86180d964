// How the Worker calls the clock. Its own object for each database: an object never knows times of another database.
import type { ClockState } from "../../core/policy/clock.ts";
import type { Settings } from "../settings/env.ts";

/** The methods of edge/clock/sluice-clock.ts, as they are called through the binding. */
export interface ClockCalls {
  tell(news: News): Promise<ClockAnswer>;
  noteLook(look: RoundLook): Promise<void>;
  tick(options: { maxSleepMs: number }): Promise<{ isAsleep: boolean; sleptMsAgo: number | null }>;
  read(options: { maxSleepMs: number }): Promise<ClockReading>;
  keepMetrics(text: string): Promise<void>;
}

export interface News {
  /** In how many milliseconds a job is due. */
  dueMs: number | null;
  /** In how many milliseconds the database must be visited. */
  visitMs?: number;
  /** The caller may enqueue or claim. */
  isWork: boolean;
}

export interface ClockAnswer {
  /** The database is held awake for so long. */
  awakeForMs: number;
  /** In how many milliseconds the clock looks for the next job that it knows of. Null: it knows of none. */
  lookInMs: number | null;
}

export interface RoundLook {
  /** How long ago the look began. */
  msAgo: number;
  hasWork: boolean;
  dueMs: number | null;
  upkeepMs: number | null;
}

export interface ClockReading {
  state: ClockState;
  isAsleep: boolean;
  nowMs: number;
  /** The metrics of the last watch round, if the database may sleep. */
  metrics: string | null;
}

/** https://developers.cloudflare.com/durable-objects/api/namespace/ */
export interface ClockBinding {
  getByName(name: string): ClockCalls;
}

export function clockOf({ clock, databaseAddress, schema }: Settings): ClockCalls | undefined {
  const { host, pathname } = databaseAddress;
  return clock?.getByName(`${host}${pathname}/${schema}`);
}
