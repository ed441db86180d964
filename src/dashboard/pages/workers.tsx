// Workers: who is alive, and what the last rounds did.
import type { RecentRound } from "../../core/snapshot.ts";
import { liveWorkers, snapshot } from "../../core/sql/index.ts";
import type { Page, PageRequest } from "../page.ts";
import { Card, Empty } from "../parts/card.tsx";
import { counted, duration } from "../parts/numbers.ts";
import { Count, None, Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";

export const workers: Page = {
  path: "/workers",
  section: "Workers",
  async render(request) {
    const [live, { recentRounds }] = await Promise.all([
      request.db.run(liveWorkers()),
      request.db.run(snapshot()),
    ]);
    return {
      title: "Workers",
      body: (
        <>
          {live.length === 0 ? (
            <Empty title="No live workers">
              Pullers that register and drains of keyed queues are listed here while they live.
            </Empty>
          ) : (
            <Card
              id="live-workers"
              title="Live workers"
              note={<span class="muted small">{counted(live.length, "worker")}</span>}
            >
              <Table
                name="Live workers"
                rows={live}
                columns={[
                  { title: "Worker", class: "wide", cell: ({ id }) => id },
                  { title: "Kind", cell: ({ kind }) => kind },
                  { title: "Queues", cell: ({ queues }) => queues.join(", ") },
                  {
                    title: "Started",
                    class: "n",
                    cell: ({ startedAt }) => <Time at={startedAt} now={request.now} />,
                  },
                  { title: "Seen", class: "n", cell: ({ seenAt }) => <Time at={seenAt} now={request.now} /> },
                ]}
              />
            </Card>
          )}
          <Rounds request={request} rounds={recentRounds} id="rounds" title="Rounds" />
        </>
      ),
    };
  },
};

interface RoundsProps {
  request: PageRequest;
  rounds: readonly RecentRound[];
  id: string;
  title: string;
}

export function Rounds({ request, rounds, id, title }: RoundsProps) {
  if (rounds.length === 0)
    return (
      <Empty title="No round has run yet">
        The crons start them. If none comes within two minutes, check the crons of the deployment.
      </Empty>
    );
  return (
    <Card id={id} title={title}>
      <Table
        name={title}
        rows={rounds}
        columns={[
          {
            title: "Round",
            class: "nw",
            cell: ({ kind, queue }) => (queue ? `${kind} ${queue}` : kind),
          },
          { title: "Ended", class: "nw", cell: ({ endedAt }) => <Time at={endedAt} now={request.now} /> },
          {
            title: "Took",
            class: "n hide-s",
            cell: ({ startedAt, endedAt }) => duration(endedAt.getTime() - startedAt.getTime()),
          },
          {
            title: "Claimed",
            class: "n hide-s",
            cell: ({ kind, claimed }) => (kind === "drain" ? <Count value={claimed} /> : <None text="–" />),
          },
          {
            title: "Why it ended",
            cell: ({ reason, message }) => <span title={message ?? ""}>{reason}</span>,
          },
        ]}
      />
    </Card>
  );
}
