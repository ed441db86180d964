// Schedules: in words, with their next slots and what became of the last ones.
import { name } from "../../contract/jobs.ts";
import type { Schedule } from "../../core/schedule.ts";
import { listSchedules, scheduleOutcomes } from "../../core/sql/index.ts";
import type { ScheduleOutcome } from "../../core/sql/schedules.ts";
import { cronInWords } from "../cron-words.ts";
import type { Page, PageRequest } from "../page.ts";
import { ActionForm, actionsColumn } from "../parts/action-form.tsx";
import { Empty } from "../parts/card.tsx";
import { jobsUrl } from "../parts/links.tsx";
import { absolute, counted, pausedText } from "../parts/numbers.ts";
import { byName, Pager, pageSize, takePage } from "../parts/pager.tsx";
import { State, StateShape } from "../parts/state.tsx";
import { None, Table } from "../parts/table.tsx";
import { Moment, Time } from "../parts/time.tsx";

type ShownSchedule = Schedule & { outcomes: readonly ScheduleOutcome[] };

export const schedules: Page = {
  path: "/schedules",
  section: "Schedules",
  async render(request) {
    const before = name.safeParse(request.query.get("before")).data;
    const page = { after: before, limit: pageSize + 1 };
    const [found, outcomes] = await Promise.all([
      request.db.run(listSchedules(page)),
      request.db.run(scheduleOutcomes({ ...page, limit: pageSize })),
    ]);
    if (found.length === 0 && page.after === undefined) return { title: "Schedules", body: <NoSchedules /> };
    const { shown, next } = takePage(found, ({ name }) => name);
    const outcomesOf = new Map(outcomes.map((entry) => [entry.name, entry.outcomes]));
    const rows = shown.map((schedule) => ({ ...schedule, outcomes: outcomesOf.get(schedule.name) ?? [] }));
    const paused = shown.filter((schedule) => schedule.paused).length;
    return {
      title: "Schedules",
      facts: (
        <span class="muted">
          {next || page.after ? "" : `${counted(shown.length, "schedule")}, ${pausedText(paused)}`}
        </span>
      ),
      body: (
        <div class="card">
          <ScheduleTable request={request} rows={rows} />
          <Pager request={request} next={next} words={byName} />
        </div>
      ),
    };
  },
};

function ScheduleTable({ request, rows }: { request: PageRequest; rows: readonly ShownSchedule[] }) {
  return (
    <Table
      name="Schedules"
      rows={rows}
      columns={[
        {
          title: "Schedule",
          class: "nw",
          cell: ({ name: own, cron }) => (
            <>
              {own}
              <span class="only-s muted small">{cronInWords(cron)}</span>
            </>
          ),
        },
        { title: "When", class: "wide hide-s", cell: (schedule) => <When {...schedule} /> },
        { title: "Makes", class: "hide-m", cell: ({ type }) => <a href={jobsUrl({ type })}>{type}</a> },
        { title: "Next", class: "n", cell: (schedule) => <Next schedule={schedule} now={request.now} /> },
        {
          title: "Last ten, newest right",
          class: "hide-s",
          cell: ({ outcomes }) => <Dots outcomes={outcomes} />,
        },
        {
          title: "If missed",
          class: "hide-m muted",
          cell: ({ missed }) => <span title={missedWords[missed]}>{missed}</span>,
        },
        ...actionsColumn<ShownSchedule>(request, (schedule) => (
          <Actions request={request} schedule={schedule} />
        )),
      ]}
    />
  );
}

const missedWords: Record<Schedule["missed"], string> = {
  skip: "none is made up for",
  last: "the last is made up for",
  all: "all are made up for",
};

function When({ cron, timeZone, source, overlap }: Schedule) {
  const notes = [
    timeZone,
    ...(source === "code" ? ["from code"] : []),
    ...(overlap === "skip" ? ["waits for its last job"] : []),
  ];
  return (
    <>
      {cronInWords(cron)}
      <br />
      <span class="muted small">
        <code>{cron}</code> {notes.join(", ")}
      </span>
    </>
  );
}

/** The next slot, and all that are planned on demand. */
function Next({ schedule: { paused, nextSlots, timeZone }, now }: { schedule: Schedule; now: Date }) {
  if (paused) return <State shape="paused" word="paused" />;
  const [first] = nextSlots;
  if (!first) return <None text="not planned yet" />;
  return (
    <details>
      <summary>
        <Time at={first} now={now} />
      </summary>
      <ol class="small">
        {nextSlots.map((slot) => (
          <li>
            <Moment at={slot} text={inZone(slot, timeZone)} />
          </li>
        ))}
      </ol>
    </details>
  );
}

/** "Mon 16 Nov, 17:00:00". A zone that this runtime does not know is shown as UTC. */
function inZone(at: Date, timeZone: string): string {
  try {
    const format = { timeZone, weekday: "short", day: "numeric", month: "short" } as const;
    return at.toLocaleString("en-GB", { ...format, hour: "2-digit", minute: "2-digit", second: "2-digit" });
  } catch {
    return absolute(at);
  }
}

function Dots({ outcomes }: { outcomes: readonly ScheduleOutcome[] }) {
  if (outcomes.length === 0) return <None text="none yet" />;
  return (
    <span class="dots">
      {outcomes.map(({ slot, jobId, status }) => (
        <a href={`/jobs/${jobId}`} title={absolute(slot)}>
          <StateShape
            shape={status ?? "missed"}
            label={`${absolute(slot)}: ${status ?? "no longer stored"}`}
          />
        </a>
      ))}
    </span>
  );
}

function Actions({ request, schedule: { name, paused } }: { request: PageRequest; schedule: Schedule }) {
  return (
    <div class="row">
      <ActionForm request={request} action="runSchedule" fields={{ name }} label="Run now" />
      <ActionForm
        request={request}
        action={paused ? "resumeSchedule" : "pauseSchedule"}
        fields={{ name }}
        label={paused ? "Resume" : "Pause"}
        kind="quiet"
      />
    </div>
  );
}

function NoSchedules() {
  return (
    <Empty
      title="No schedules yet"
      example={`curl -X PUT -H "authorization: Bearer $SLUICE_KEY" -H "content-type: application/json" \\
  $SLUICE_URL/v1/schedules/nightly -d '{ "cron": "0 2 * * *", "type": "echo" }'`}
    >
      A schedule makes a job at the times of a cron expression. Each one is listed here with its next times
      and what became of its last jobs.
    </Empty>
  );
}
