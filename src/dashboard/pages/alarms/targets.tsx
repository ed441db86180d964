// The targets of notices, and whether deliveries to them succeed.
import type { Alarms } from "../../../core/sql/alarms.ts";
import { type TargetState, targetStates } from "../../../queue/alarms/targets.ts";
import type { PageRequest } from "../../page.ts";
import { ActionForm, actionsColumn } from "../../parts/action-form.tsx";
import { Card, Empty } from "../../parts/card.tsx";
import { counted } from "../../parts/numbers.ts";
import { State } from "../../parts/state.tsx";
import { None, Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";

export function Targets({ request, stored }: { request: PageRequest; stored: Alarms }) {
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
      note={
        <a class="push small" href="/alarms/deliveries">
          Deliveries
        </a>
      }
    >
      <Table
        name="Targets of alarms"
        rows={rows}
        columns={[
          {
            title: "Target",
            class: "nw",
            cell: ({ name, format }) => (
              <>
                {name} <span class="muted">{format}</span>
              </>
            ),
          },
          { title: "State", class: "wide", cell: (target) => <Health target={target} /> },
          {
            title: "Last answer",
            class: "n",
            cell: (target) => <LastAnswer target={target} now={request.now} />,
          },
          ...actionsColumn<TargetState>(request, ({ name }) => (
            <ActionForm
              request={request}
              action="sendTestNotice"
              fields={{ target: name }}
              label="Test"
              kind="quiet"
            />
          )),
        ]}
      />
    </Card>
  );
}

function Health({ target: { goneSince, failingSince, pending } }: { target: TargetState }) {
  if (goneSince) return <State shape="missed" word="off: it answered 410" />;
  if (failingSince) return <State shape="retrying" word={`failing, ${counted(pending, "notice")} waiting`} />;
  return <State shape="ok" word={pending === 0 ? "ok" : `ok, ${counted(pending, "notice")} waiting`} />;
}

function LastAnswer({ target: { status, error, deliveredAt }, now }: { target: TargetState; now: Date }) {
  if (error) return <span class="t-dead">{status === null ? error : `${status}: ${error}`}</span>;
  if (!deliveredAt) return <None />;
  return (
    <>
      {status}, <Time at={deliveredAt} now={now} />
    </>
  );
}
