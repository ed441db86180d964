// Rounds: what each did, and why it ended.
import type { Child } from "hono/jsx";
import type { RecentRound } from "../../../core/snapshot.ts";
import type { PageRequest } from "../../page.ts";
import { Card, Empty } from "../../parts/card.tsx";
import { queueUrl } from "../../parts/links.tsx";
import { duration } from "../../parts/numbers.ts";
import { Count, None, Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";

interface RoundsProps {
  request: PageRequest;
  rounds: readonly RecentRound[];
  id: string;
  title: string;
  note: Child;
}

export function Rounds({ request, rounds, id, title, note }: RoundsProps) {
  if (rounds.length === 0) return <NoRounds />;
  return (
    <Card id={id} title={title} note={note}>
      <RoundTable request={request} rounds={rounds} name={title} />
    </Card>
  );
}

export function NoRounds() {
  return (
    <Empty title="No round has run yet">
      The crons start them. If none comes within two minutes, check the crons of the deployment.
    </Empty>
  );
}

interface RoundTableProps {
  request: PageRequest;
  rounds: readonly RecentRound[];
  name: string;
  isDetailed?: boolean;
}

/** With `isDetailed` also what became of the claimed jobs, and each step of a reap or watch round. */
export function RoundTable({ request, rounds, name, isDetailed = false }: RoundTableProps) {
  const ofJobs = (round: RecentRound, value: number) =>
    round.steps === null ? <Count value={value} /> : <None text="–" />;
  const detail = (title: string, field: "completed" | "failed" | "lost") => ({
    title,
    class: "n hide-m",
    cell: (round: RecentRound) => ofJobs(round, round[field]),
  });
  return (
    <Table
      name={name}
      rows={rounds}
      columns={[
        { title: "Round", class: "nw", cell: (round) => <RoundName {...round} /> },
        { title: "Ended", class: "nw", cell: ({ endedAt }) => <Time at={endedAt} now={request.now} /> },
        {
          title: "Took",
          class: "n hide-s",
          cell: ({ startedAt, endedAt }) => duration(endedAt.getTime() - startedAt.getTime()),
        },
        { title: "Claimed", class: "n hide-s", cell: (round) => ofJobs(round, round.claimed) },
        ...(isDetailed
          ? [detail("Completed", "completed"), detail("Failed", "failed"), detail("Lost", "lost")]
          : []),
        {
          title: "Why it ended",
          class: isDetailed ? "wide" : "",
          cell: (round) => <Why {...round} isDetailed={isDetailed} />,
        },
      ]}
    />
  );
}

function RoundName({ kind, queue }: RecentRound) {
  if (queue === null) return <>{kind}</>;
  return (
    <>
      {kind}{" "}
      <a class="muted" href={queueUrl(queue)}>
        {queue}
      </a>
    </>
  );
}

const reasons: Record<string, readonly [what: string, why: string]> = {
  empty: ["queue was empty", "nothing was due"],
  time: ["time was up", "the next round goes on"],
  subrequests: ["requests were used up", "the next round goes on"],
  done: ["done", "all steps were taken"],
};

function Why({ reason, message, steps, isDetailed }: RecentRound & { isDetailed: boolean }) {
  const [what, why] = reasons[reason] ?? [reason, "no message"];
  return (
    <>
      <span class={reason === "error" ? "t-dead" : undefined}>{what}</span>
      {isDetailed || message ? <span class="muted">: {message ?? why}</span> : null}
      {isDetailed && steps ? <Steps steps={steps} /> : null}
    </>
  );
}

function Steps({ steps }: { steps: NonNullable<RecentRound["steps"]> }) {
  const rows = Object.entries(steps).map(([name, report]) => {
    const { ms = 0, did = [], error } = (report ?? {}) as { ms?: number; did?: unknown[]; error?: string };
    return { name, ms, did: error ?? did.map((part) => JSON.stringify(part)).join(", ") };
  });
  return (
    <details>
      <summary>{`${rows.length} steps`}</summary>
      <dl class="defs small">
        {rows.map(({ name, ms, did }) => (
          <>
            <dt>{name}</dt>
            <dd>
              {duration(ms)} <code class="muted">{did}</code>
            </dd>
          </>
        ))}
      </dl>
    </details>
  );
}
