// Flows: how far each one is.

import type { Flow } from "../../core/sql/flows.ts";
import { listFlows } from "../../core/sql/index.ts";
import type { Page } from "../page.ts";
import { Bar, type Segment } from "../parts/bar.tsx";
import { Empty } from "../parts/card.tsx";
import { FlowId } from "../parts/links.tsx";
import { count } from "../parts/numbers.ts";
import { Pager, pageSize, takePage } from "../parts/pager.tsx";
import { type Shape, State } from "../parts/state.tsx";
import { Table } from "../parts/table.tsx";
import { Age } from "../parts/time.tsx";
import { isUuid } from "../search.ts";

export const flows: Page = {
  path: "/flows",
  section: "Flows",
  async render(request) {
    const cursor = request.query.get("before") ?? "";
    const found = await request.db.run(
      listFlows({ before: isUuid(cursor) ? cursor : undefined, limit: pageSize + 1 }),
    );
    const { shown, next } = takePage(found, ({ flowId }) => flowId);
    if (found.length === 0) return { title: "Flows", body: <NoFlows /> };
    return {
      title: "Flows",
      body: (
        <div class="card">
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
              {
                title: "Age",
                class: "n",
                cell: ({ createdAt }) => <Age at={createdAt} now={request.now} />,
              },
            ]}
          />
          <Pager request={request} next={next} />
        </div>
      ),
    };
  },
};

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
