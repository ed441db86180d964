// Alarms: what fires, the rules, and the targets of the notices.
import { type AlarmRule, alarmKey } from "../../core/alarms/alarm.ts";
import type { Alarms, StoredAlarm } from "../../core/sql/alarms.ts";
import { readAlarms } from "../../core/sql/index.ts";
import { targetStates } from "../../queue/alarms/targets.ts";
import type { Page, PageRequest } from "../page.ts";
import { ActionForm } from "../parts/action-form.tsx";
import { Card, Empty } from "../parts/card.tsx";
import { counted } from "../parts/numbers.ts";
import { State } from "../parts/state.tsx";
import { None, Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";

export const alarms: Page = {
  path: "/alarms",
  section: "Alarms",
  async render(request) {
    const stored = await request.db.run(readAlarms());
    return {
      title: "Alarms",
      tools: <ActionForm request={request} action="sendTestNotice" label="Send a test notice" />,
      body: (
        <>
          <States request={request} stored={stored} />
          <Targets request={request} stored={stored} />
          <Rules rules={request.settings.alarmRules} />
        </>
      ),
    };
  },
};

const silenceMinutes = 60;

function States({ request, stored }: { request: PageRequest; stored: Alarms }) {
  const rank = ({ state }: StoredAlarm) => ["firing", "pending", "ok"].indexOf(state.phase);
  const rows = stored.alarms.toSorted((a, b) => rank(a) - rank(b));
  if (rows.length === 0)
    return (
      <Empty title="No alarm was raised yet">
        Each watch round checks the rules below. What it finds is listed here.
      </Empty>
    );
  return (
    <Card id="states" title="States">
      <Table
        name="States of the alarms"
        rows={rows}
        columns={[
          { title: "Alarm", class: "nw", cell: ({ state }) => state.alarm },
          { title: "State", class: "nw", cell: ({ state }) => <Phase phase={state.phase} /> },
          { title: "What", class: "wide", cell: ({ state }) => state.summary },
          { title: "Since", class: "n", cell: ({ state }) => <Time at={state.since} now={request.now} /> },
          {
            title: "Actions",
            isHidden: true,
            class: "n",
            cell: ({ state: { alarm } }) => (
              <ActionForm
                request={request}
                action="silenceAlarm"
                fields={{ alarm, minutes: String(silenceMinutes) }}
                label="Silence for 1 h"
              />
            ),
          },
        ]}
      />
      {stored.silences.map(({ alarm, until }) => (
        <p class="pad">
          <State shape="silenced" word={`${alarm} is silenced until`} /> <Time at={until} now={request.now} />
        </p>
      ))}
    </Card>
  );
}

function Phase({ phase }: { phase: StoredAlarm["state"]["phase"] }) {
  if (phase === "firing") return <State shape="alarm" word="firing" />;
  return phase === "pending" ? <State shape="later" word="pending" /> : <State shape="ok" word="ok" />;
}

function Targets({ request, stored }: { request: PageRequest; stored: Alarms }) {
  const rows = targetStates(request.settings.alarmTargets, stored.targets);
  if (rows.length === 0)
    return (
      <Empty title="No targets yet">
        A target is a URL that gets a notice when an alarm fires. Set SLUICE_ALARM_TARGETS to have some.
      </Empty>
    );
  return (
    <Card
      id="targets"
      title="Targets"
      note={<span class="muted small">{counted(rows.length, "target")}</span>}
    >
      <Table
        name="Targets"
        rows={rows}
        columns={[
          { title: "Target", cell: ({ name }) => name },
          { title: "Format", cell: ({ format }) => format },
          {
            title: "Last delivery",
            class: "wide",
            cell: ({ deliveredAt }) => (deliveredAt ? <Time at={deliveredAt} now={request.now} /> : <None />),
          },
          { title: "Answer", class: "n", cell: ({ status }) => status ?? <None /> },
          { title: "Error", cell: ({ error }) => error ?? <None /> },
        ]}
      />
    </Card>
  );
}

function Rules({ rules }: { rules: readonly AlarmRule[] }) {
  return (
    <Card id="rules" title="Rules">
      <Table
        name="Rules"
        rows={rules.toSorted((a, b) => alarmKey(a).localeCompare(alarmKey(b)))}
        columns={[
          { title: "Alarm", class: "wide", cell: ({ alarm }) => alarm },
          { title: "About", class: "hide-s", cell: ({ queue, jobType }) => jobType ?? queue ?? "all" },
          { title: "Limit", class: "n", cell: ({ threshold }) => String(threshold) },
          { title: "Severity", cell: ({ severity }) => severity },
          { title: "Checked", cell: ({ isEnabled }) => (isEnabled ? "yes" : "no") },
        ]}
      />
    </Card>
  );
}
