// Alarms: the state of each rule, what it sees and its limit, what has happened, targets, and silences.
import { alarmNames } from "../../core/alarms/alarm.ts";
import { listWindows, observe } from "../../core/alarms/alarm-rules.ts";
import type { AlarmEvent } from "../../core/sql/alarms.ts";
import { listAlarmEvents, readAlarms, snapshot } from "../../core/sql/index.ts";
import { targetStates } from "../../queue/alarms/targets.ts";
import type { Page, PageRequest } from "../page.ts";
import { ActionForm, Choice, Input, refusalOf } from "../parts/action-form.tsx";
import { Card, Empty } from "../parts/card.tsx";
import { counted } from "../parts/numbers.ts";
import { Events } from "./alarms/events.tsx";
import { type AlarmRow, alarmRows, StateTable } from "./alarms/state-table.tsx";
import { Targets } from "./alarms/targets.tsx";

const shownEvents = 8;

export const alarms: Page = {
  path: "/alarms",
  section: "Alarms",
  async render(request) {
    const { alarmRules: rules, alarmTargets } = request.settings;
    const [stored, seen, events] = await Promise.all([
      request.db.run(readAlarms()),
      request.db.run(snapshot({ windows: listWindows(rules) })),
      request.db.run(listAlarmEvents({ limit: shownEvents })),
    ]);
    const targets = targetStates(alarmTargets, stored.targets);
    const observations = observe({ snapshot: seen, targets }, rules);
    const rows = alarmRows({ stored, rules, observations, now: request.now });
    return {
      title: "Alarms",
      facts: <span class="muted">{factsOf(rows, rules.length)}</span>,
      tools: <ActionForm request={request} action="sendTestNotice" label="Send a test notice" />,
      body: (
        <>
          <StateTable request={request} rows={rows} />
          <div class="two">
            <History request={request} events={events} />
            <div class="stack">
              <Targets request={request} stored={stored} />
              <Silence request={request} />
            </div>
          </div>
        </>
      ),
    };
  },
};

function factsOf(rows: readonly AlarmRow[], rules: number): string {
  const number = (state: AlarmRow["state"]) => rows.filter((row) => row.state === state).length;
  return `${counted(rules, "rule")}, ${number("firing") || "none"} firing aloud, ${number("silenced") || "none"} silenced`;
}

function History({ request, events }: { request: PageRequest; events: readonly AlarmEvent[] }) {
  if (events.length === 0)
    return (
      <Empty title="Nothing has happened yet">
        Each watch round checks the rules above. When one fires or is resolved, and when somebody silences
        one, it is listed here.
      </Empty>
    );
  return (
    <Card
      id="history"
      title="History"
      note={
        <a class="push small" href="/alarms/history">
          All events
        </a>
      }
    >
      <Events request={request} events={events} />
    </Card>
  );
}

const lengths = [
  ["60", "1 hour"],
  ["240", "4 hours"],
  ["1440", "1 day"],
  ["10080", "1 week"],
] as const;

function Silence({ request }: { request: PageRequest }) {
  if (!request.viewer.mayChange) return null;
  const refusal = refusalOf(request, "silenceAlarm");
  return (
    <Card id="silence" title="Silence an alarm">
      <div class="pad">
        <ActionForm request={request} action="silenceAlarm" label="Silence" kind="main">
          <div class="two">
            <Choice
              refusal={refusal}
              name="alarm"
              label="Alarm"
              value={request.query.get("silence") ?? undefined}
              options={alarmNames.map((name) => [name, name])}
            />
            <Choice refusal={refusal} name="minutes" label="For" options={lengths} />
          </div>
          <Input
            refusal={refusal}
            name="until"
            label="Or until, UTC"
            hint="Empty: for as long as chosen above."
            control={{ type: "datetime-local" }}
          />
          <Input
            refusal={refusal}
            name="reason"
            label="Why"
            hint="For the audit. Notices are kept back, not states."
            control={{ maxlength: 1000 }}
          />
        </ActionForm>
      </div>
    </Card>
  );
}
