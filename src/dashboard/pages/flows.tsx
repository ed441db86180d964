// Flows: how far each one is, all of them or those of one state.
import { type FlowStatus, flowStatuses } from "../../core/flow.ts";
import type { Flow } from "../../core/sql/flows.ts";
import { listFlows } from "../../core/sql/index.ts";
import type { Page, PageRequest } from "../page.ts";
import { Bar, type Segment } from "../parts/bar.tsx";
import { Empty } from "../parts/card.tsx";
import { Chip, FlowId } from "../parts/links.tsx";
import { count } from "../parts/numbers.ts";
import { goOn, Pager, pageSize, SearchedTo, takePage, urlWith } from "../parts/pager.tsx";
import { type Shape, State } from "../parts/state.tsx";
import { Table } from "../parts/table.tsx";
import { Age } from "../parts/time.tsx";
import { isUuid } from "../search.ts";

export const flows: Page = {
  path: "/flows",
  section: "Flows",
  async render(request) {
    const cursor = request.query.get("before") ?? "";
    const status = flowStatuses.find((known) => known === request.query.get("status"));
    const page = await request.db.run(
      listFlows({ status, before: isUuid(cursor) ? cursor : undefined, limit: pageSize + 1 }),
    );
    const { shown, next } = takePage(page.flows, ({ flowId }) => flowId);
    const searchedTo = next === null ? page.next : null;
    if (shown.length === 0 && searchedTo === null && !status && cursor === "")
      return { title: "Flows", body: <NoFlows /> };
    return {
      title: "Flows",
      facts:
        shown.length > 0 ? <span class="muted">{`${shown.length} shown, newest first`}</span> : undefined,
      body: (
        <div class="card">
          <Narrow request={request} status={status} />
          {shown.length > 0 ? <FlowTable request={request} flows={shown} /> : null}
          {shown.length === 0 && searchedTo === null ? (
            <Empty title={status ? `No flow is ${status}` : "No older flows"}>
              {status === "dead"
                ? "A flow is dead when one of its jobs died and nothing of it runs any more."
                : "Choose another state to see the others."}
            </Empty>
          ) : null}
          <SearchedTo id={searchedTo} found={shown.length} what="flows" />
          <Pager request={request} next={next ?? searchedTo} {...(searchedTo !== null && { words: goOn })} />
        </div>
      ),
    };
  },
};

function Narrow({ request, status }: { request: PageRequest; status: FlowStatus | undefined }) {
  return (
    <div class="pad chips">
      <span class="muted">Narrow:</span>
      {flowStatuses.map((known) => (
        <Chip
          href={urlWith(request, { status: known === status ? undefined : known, before: undefined })}
          text={known}
          isOn={known === status}
        />
      ))}
    </div>
  );
}

function FlowTable({ request, flows: shown }: { request: PageRequest; flows: readonly Flow[] }) {
  return (
    <Table
      name="Flows"
      rows={shown}
      columns={[
        { title: "Flow", class: "nw", cell: ({ flowId }) => <FlowId id={flowId} /> },
        { title: "State", class: "nw", cell: ({ status }) => <FlowState status={status} isShort /> },
        {
          title: "Progress",
          class: "wide",
          cell: (flow) => <Bar name={flow.flowId} segments={flowSegments(flow)} />,
        },
        {
          title: "Done",
          class: "n",
          cell: ({ counts, total }) => `${count(counts.completed)} of ${count(total)}`,
        },
        { title: "Age", class: "n", cell: ({ createdAt }) => <Age at={createdAt} now={request.now} /> },
      ]}
    />
  );
}

export function FlowState({ status, isShort = false }: { status: Flow["status"]; isShort?: boolean }) {
  return <State shape={status === "running" ? "processing" : status} word={status} isShort={isShort} />;
}

const order: readonly (Shape & keyof Flow["counts"])[] = [
  ...(["completed", "processing", "pending", "blocked", "dead", "cancelled", "discarded"] as const),
];

export function flowSegments({ counts }: Flow): Segment[] {
  return order.map((shape) => ({ shape, word: shape, value: counts[shape] }));
}

function NoFlows() {
  return (
    <Empty
      title="No flows yet"
      example={`curl -X POST -H "authorization: Bearer $SLUICE_KEY" \\
  -H "content-type: application/json" $SLUICE_URL/v1/flows -d '{
  "jobs": [
    { "ref": "a", "type": "echo", "payload": { "n": 1 } },
    { "ref": "b", "type": "echo", "payload": { "n": 2 } },
    { "ref": "total", "type": "sum", "after": { "parts": ["a", "b"] } }
  ] }'`}
    >
      A flow is a set of jobs that wait for each other. Each one you start is listed here with its progress,
      its graph and what it waits for.
    </Empty>
  );
}
