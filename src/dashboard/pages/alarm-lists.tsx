// All that happened to alarms, and all notices to targets, newest first.
import type { Delivery } from "../../core/sql/deliver.ts";
import { listAlarmEvents, listDeliveries } from "../../core/sql/index.ts";
import type { Page, PageRequest } from "../page.ts";
import { Empty } from "../parts/card.tsx";
import { Pager, pageSize, takePage } from "../parts/pager.tsx";
import { State } from "../parts/state.tsx";
import { None, Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { Events } from "./alarms/events.tsx";

export const alarmHistory: Page = {
  path: "/alarms/history",
  section: "Alarms",
  async render(request) {
    const found = await request.db.run(listAlarmEvents(pageOf(request)));
    const { shown, next } = takePage(found, ({ id }) => id);
    return {
      title: "Alarms",
      crumbs: <a href="/alarms">All alarms</a>,
      facts: <span class="muted">what has happened to them</span>,
      body:
        found.length === 0 ? (
          <Empty title="Nothing has happened yet">
            When an alarm fires or is resolved, and when somebody silences one, it is listed here.
          </Empty>
        ) : (
          <div class="card">
            <Events request={request} events={shown} />
            <Pager request={request} next={next} />
          </div>
        ),
    };
  },
};

export const deliveries: Page = {
  path: "/alarms/deliveries",
  section: "Alarms",
  async render(request) {
    const found = await request.db.run(listDeliveries(pageOf(request)));
    const { shown, next } = takePage(found, ({ seq }) => seq);
    return {
      title: "Alarms",
      crumbs: <a href="/alarms">All alarms</a>,
      facts: <span class="muted">notices to targets, and what became of them</span>,
      body:
        found.length === 0 ? (
          <Empty title="No notices yet">
            When an alarm fires or is resolved, each target of SLUICE_ALARM_TARGETS gets a notice. A test
            notice is sent at once and is not listed here.
          </Empty>
        ) : (
          <div class="card">
            <DeliveryTable request={request} rows={shown} />
            <Pager request={request} next={next} />
          </div>
        ),
    };
  },
};

/** A number of up to 18 digits always fits a bigint. A cursor that is none is the first page. */
function pageOf({ query }: PageRequest): { before: string | undefined; limit: number } {
  const before = /^\d{1,18}$/.exec(query.get("before") ?? "")?.[0];
  return { before, limit: pageSize + 1 };
}

function DeliveryTable({ request, rows }: { request: PageRequest; rows: readonly Delivery[] }) {
  return (
    <Table
      name="Deliveries"
      rows={rows}
      columns={[
        { title: "Target", class: "nw", cell: ({ target }) => target },
        { title: "State", class: "nw", cell: ({ state }) => <DeliveryState state={state} /> },
        {
          title: "Notice",
          class: "wide",
          cell: ({ noticeType, alarm, jobType, queue }) =>
            [alarm, noticeType.replace("alarm.", ""), jobType ?? queue].filter(Boolean).join(", "),
        },
        { title: "Tries", class: "n hide-s", cell: ({ tries }) => tries },
        {
          title: "Last answer",
          class: "n hide-s",
          cell: ({ status, error }) => error ?? status ?? <None />,
        },
        {
          title: "Next try",
          class: "n hide-m",
          cell: ({ nextTryAt }) =>
            nextTryAt ? <Time at={nextTryAt} now={request.now} /> : <None text="–" />,
        },
        { title: "Made", class: "n", cell: ({ createdAt }) => <Time at={createdAt} now={request.now} /> },
      ]}
    />
  );
}

function DeliveryState({ state }: { state: Delivery["state"] }) {
  if (state === "delivered") return <State shape="completed" word="delivered" />;
  return state === "pending" ? (
    <State shape="retrying" word="waiting" />
  ) : (
    <State shape="dead" word="given up" />
  );
}
