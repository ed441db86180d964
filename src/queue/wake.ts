// What the clock asks for when something is due: look at the database, and say which queues need drains and when to come
// back. A visit first does the part of the reaper that has a time: leases that ran out, expired jobs, slots to plan, notices.
import { describeError } from "../core/database-errors.ts";
import type { NextDue } from "../core/sql/next-due.ts";
import { type DeliverOptions, deliver } from "./alarms/deliver.ts";
import type { Ports } from "./ports.ts";
import { reapDue, soonMs } from "./reap.ts";
import { type DrainRoundOptions, lookForWork } from "./rounds.ts";

export interface WakeReport extends NextDue {
  /** One entry for each drain to start. */
  queues: string[];
}

export interface WakeOptions extends Pick<DrainRoundOptions, "plan" | "fanOut"> {
  upkeep: boolean;
  notices: DeliverOptions;
}

export async function wake(
  ports: Ports,
  { plan, fanOut, upkeep, notices }: WakeOptions,
): Promise<WakeReport> {
  const options = { plan, fanOut, upkeep, isFannedOut: true };
  if (!upkeep) return lookForWork(ports, options);
  const failed = (error: unknown) => ports.log.error("a visit failed in part", describeError(error));
  const [reaped] = await Promise.all([reapDue(ports).catch(failed), deliver(ports, notices).catch(failed)]);
  const look = await lookForWork(ports, options);
  return reaped?.hasMore ? { ...look, upkeepMs: soonMs } : look;
}
