// The schedules that make the next jobs.
import type { Overview } from "../../../core/sql/overview.ts";
import { cronInWords } from "../../cron-words.ts";
import type { PageRequest } from "../../page.ts";
import { Card, Empty } from "../../parts/card.tsx";
import { Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";

interface Props {
  request: PageRequest;
  slots: Overview["nextSlots"];
}

export function NextSchedules({ request, slots }: Props) {
  if (slots.length === 0)
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
          All schedules
        </a>
      }
    >
      <Table
        name="Next schedules"
        rows={slots}
        columns={[
          { title: "Schedule", cell: ({ name }) => name },
          {
            title: "When",
            class: "hide-s",
            cell: ({ cron, timeZone }) => (
              <>
                {cronInWords(cron)} <span class="muted hide-m">{timeZone}</span>
              </>
            ),
          },
          { title: "Next", class: "n", cell: ({ slot }) => <Time at={slot} now={request.now} /> },
        ]}
      />
    </Card>
  );
}
