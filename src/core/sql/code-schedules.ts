// apply code schedules: makes the schedules of source `code` those of this deployment. See migrations/functions/code-schedules.sql.
import { type NewSchedule, toScheduleFields } from "../schedule.ts";
import { sql } from "./sql.ts";
import { one, type Statement } from "./statement.ts";

/** Does nothing if a newer set is known, or if this one is applied already. */
export function applyCodeSchedules(
  checksum: string,
  schedules: readonly NewSchedule[],
): Statement<{ put: number; removed: number }> {
  return {
    name: "apply code schedules",
    isRepeatable: true,
    build: (schema) => sql`
      select put, removed
      from ${schema}.apply_code_schedules(
        ${checksum}::text, ${JSON.stringify(schedules.map(toScheduleFields))}::text::jsonb)`,
    decode: one(({ put, removed }) => ({ put: put as number, removed: removed as number })),
  };
}
