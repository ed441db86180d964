// The scope of a rule, and the rows within it. There may be thousands of queues, each with a rule. So the rows are grouped
// once, and each rule reads only its own.
import { isCanary } from "../alarms/alarm.ts";

/** Null means all of them. */
export interface Scope {
  queue: string | null;
  jobType: string | null;
}

interface Placed {
  queue: string;
  type: string;
}

/** Only a rule that names the canary includes it. */
export function within<Row extends Placed>(rows: readonly Row[]): (scope: Scope) => readonly Row[] {
  const ofUsers = rows.filter((row) => !isCanary(row));
  const byQueue = grouped(ofUsers, ({ queue }) => queue);
  const byType = grouped(rows, ({ type }) => type);
  const byBoth = grouped(rows, ({ queue, type }) => `${queue} ${type}`);
  return ({ queue, jobType }) => {
    if (jobType === null) return queue === null ? ofUsers : (byQueue.get(queue) ?? []);
    return (queue === null ? byType.get(jobType) : byBoth.get(`${queue} ${jobType}`)) ?? [];
  };
}

function grouped<Row>(rows: readonly Row[], keyOf: (row: Row) => string): Map<string, Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const group = groups.get(keyOf(row));
    if (group) group.push(row);
    else groups.set(keyOf(row), [row]);
  }
  return groups;
}
