// The keys with the most waiting jobs, and their shares.
import type { QueueNumbers, TopKey } from "../../../core/sql/queue-numbers.ts";
import { Card } from "../../parts/card.tsx";
import { count, counted } from "../../parts/numbers.ts";
import { Count, Table } from "../../parts/table.tsx";

export function TopKeys({ keys: { looked, top } }: { keys: QueueNumbers["keys"] }) {
  const shareOf = ({ waiting }: TopKey) => (waiting / Math.max(looked, 1)) * 100;
  return (
    <Card
      id="top-keys"
      title="Largest keys"
      note={
        looked === 0 ? null : (
          <span class="muted small">of the {counted(looked, "oldest waiting job")} with a key</span>
        )
      }
    >
      {top.length === 0 ? (
        <p class="pad muted">
          No job with a partition key or a fair key waits here. The keys with the most of them are listed
          here.
        </p>
      ) : (
        <Table
          name="Largest keys"
          rows={top}
          columns={[
            { title: "Key", class: "nw", cell: ({ key }) => <code>{key}</code> },
            { title: "Kind", class: "hide-s", cell: ({ kind }) => kind },
            {
              title: "Share",
              class: "wide",
              cell: (row) => <progress max={100} value={shareOf(row)} aria-label={`Share of ${row.key}`} />,
            },
            { title: "Of all", class: "n", cell: (row) => `${count(shareOf(row))} %` },
            { title: "Waiting", class: "n", cell: ({ waiting }) => <Count value={waiting} /> },
            { title: "Running", class: "n hide-s", cell: ({ running }) => <Count value={running} /> },
          ]}
        />
      )}
    </Card>
  );
}
