// What a job belongs to: its flow and its chain.
import type { Chain } from "../../../core/sql/blockers.ts";
import type { Flow } from "../../../core/sql/flows.ts";
import { Bar } from "../../parts/bar.tsx";
import { Card } from "../../parts/card.tsx";
import { JobId } from "../../parts/links.tsx";
import { count } from "../../parts/numbers.ts";
import { Table } from "../../parts/table.tsx";
import { flowSegments } from "../flows.tsx";

export function FlowCard({ flow }: { flow: Flow }) {
  return (
    <Card
      id="flow"
      title="Flow"
      note={
        <a class="push small" href={`/flows/${flow.flowId}`}>
          {count(flow.counts.completed)} of {count(flow.total)} completed
        </a>
      }
    >
      <div class="pad">
        <Bar name="Flow" segments={flowSegments(flow)} />
      </div>
    </Card>
  );
}

/** The jobs around this one, at most this many on each side. */
const neighbours = 5;

export function ChainCard({ chain, job }: { chain: Chain; job: { id: string } }) {
  const place = chain.jobs.indexOf(job.id);
  const rows = chain.jobs
    .map((id, index) => ({ id, index }))
    .slice(Math.max(0, place - neighbours), place + neighbours + 1);
  return (
    <Card
      id="chain"
      title="Chain"
      note={<span class="muted small push">{count(chain.jobs.length)} jobs</span>}
    >
      <Table
        name="Chain"
        rows={rows}
        columns={[
          { title: "Place", cell: ({ index }) => String(index + 1) },
          { title: "Job", class: "wide", cell: ({ id }) => (id === job.id ? "this job" : <JobId id={id} />) },
        ]}
      />
    </Card>
  );
}
