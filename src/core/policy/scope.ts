// What a rule is about, and the rows that are within it. There may be thousands of queues, each with a look of its own:
// so the rows are sorted once, and a look reads no row but its own.
import { isCanary } from "../alarms/alarm.ts";

/** Null: all of them. */
export interface Scope {
  queue: string | null;
  jobType: string | null;
}

interface Placed {
  queue: string;
  type: string;
}

/** The canary is watched by its completions alone: a scope holds it only where it names it. */
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
    const known = groups.get(keyOf(row));
    if (known) known.push(row);
    else groups.set(keyOf(row), [row]);
  }
  return groups;
}
