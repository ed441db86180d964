// Types: what each did in the last hour, how long its jobs waited and ran, its limits, and its circuit breaker.
import type { Page } from "../page.ts";
import { actionsColumn } from "../parts/action-form.tsx";
import { Empty } from "../parts/card.tsx";
import { Dead } from "../parts/queue-columns.tsx";
import { Count, None, Table } from "../parts/table.tsx";
import {
  formatPercentiles,
  formatShare,
  limitsInUse,
  readTypes,
  type ShownType,
} from "./types/shown-type.ts";
import { PauseForm, TypeState } from "./types/type-state.tsx";

export const types: Page = {
  path: "/types",
  section: "Types",
  async render(request) {
    const shown = await readTypes(request);
    if (shown.length === 0)
      return {
        title: "Types",
        body: (
          <Empty
            title="No types yet"
            example={`export const echo = defineJob("echo", {
  payload: z.object({ text: z.string() }),
  run: async ({ text }) => console.log(text),
});`}
          >
            A type is a kind of job: its payload, its handler, its limits. Define one and pass it to sluice(
            {"{ jobs }"}).
          </Empty>
        ),
      };
    return {
      title: "Types",
      facts: <span class="muted">numbers of the last hour</span>,
      body: (
        <div class="card">
          <Table
            name="Types"
            rows={shown}
            columns={[
              {
                title: "Type",
                class: "wide",
                cell: ({ type }) => <a href={`/types/${encodeURIComponent(type)}`}>{type}</a>,
              },
              { title: "State", class: "nw", cell: (row) => <TypeState shown={row} isShort /> },
              { title: "Waiting", class: "n", cell: ({ counts }) => <Count value={counts.pending} /> },
              { title: "Enqueued", class: "n hide-m", cell: ({ enqueued }) => <Count value={enqueued} /> },
              { title: "Completed", class: "n hide-s", cell: ({ completed }) => <Count value={completed} /> },
              {
                title: "Failed",
                class: "n hide-s",
                cell: ({ failureRate }) =>
                  failureRate === null ? <None text="–" /> : <span>{formatShare(failureRate)}</span>,
              },
              {
                title: "Wait p50, p95",
                class: "n hide-m",
                cell: ({ waiting }) => formatPercentiles(waiting) ?? <None text="–" />,
              },
              {
                title: "Run p50, p95",
                class: "n hide-m",
                cell: ({ processing }) => formatPercentiles(processing) ?? <None text="–" />,
              },
              {
                title: "Limits in use",
                class: "nw hide-m",
                cell: (row) => limitsInUse(row).join("; ") || <None />,
              },
              {
                title: "Dead",
                class: "n",
                cell: ({ type, counts }) => <Dead of={{ type }} dead={counts.dead} />,
              },
              ...actionsColumn<ShownType>(
                request,
                (row) => <PauseForm request={request} shown={row} />,
                "n hide-s",
              ),
            ]}
          />
        </div>
      ),
    };
  },
};
