// The schedules that make the next jobs.
import type { Schedule } from "../../../core/schedule.ts";
import type { PageRequest } from "../../page.ts";
import { Card, Empty } from "../../parts/card.tsx";
import { Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { cronInWords } from "../schedules.tsx";

const shown = 5;

interface Props {
  request: PageRequest;
  schedules: readonly Schedule[];
  /** Not all schedules were read. */
  hasMore: boolean;
}

export function NextSchedules({ request, schedules, hasMore }: Props) {
  const next = schedules
    .flatMap(({ name, cron, nextSlots: [slot] }) => (slot ? [{ name, cron, slot }] : []))
    .toSorted((a, b) => a.slot.getTime() - b.slot.getTime())
    .slice(0, shown);
  if (next.length === 0)
    return (
      <Empty title="No schedule is due">
        A schedule makes a job at the times of a cron expression. <a href="/schedules">All schedules</a>
      </Empty>
    );
  return (
    <Card
      id="next-schedules"
      title="Next schedules"
      note={
        <a class="push small" href="/schedules">
          {hasMore ? `of the first ${schedules.length}: look at all` : "All schedules"}
        </a>
      }
    >
      <Table
        name="Next schedules"
        rows={next}
        columns={[
          { title: "Schedule", cell: ({ name }) => name },
          { title: "When", class: "hide-s", cell: ({ cron }) => cronInWords(cron) },
          { title: "Next", class: "n", cell: ({ slot }) => <Time at={slot} now={request.now} /> },
        ]}
      />
    </Card>
  );
}
