// Workers: who is alive, which keys each one takes, and what the last rounds did.
import { bucketCount, ownersOf } from "../../core/policy/hash-ring.ts";
import { type RoundKind, roundKinds } from "../../core/snapshot.ts";
import { listRounds, liveWorkers } from "../../core/sql/index.ts";
import type { ListedRound } from "../../core/sql/rounds.ts";
import type { LiveWorker } from "../../core/sql/workers.ts";
import type { Page, PageRequest } from "../page.ts";
import { Card, Empty } from "../parts/card.tsx";
import { queueUrl } from "../parts/links.tsx";
import { count, counted } from "../parts/numbers.ts";
import { Pager, pageSize, takePage, urlWith } from "../parts/pager.tsx";
import { None, Table } from "../parts/table.tsx";
import { Age, Time } from "../parts/time.tsx";
import { hueOf, labelOf, Ring, type RingOfQueue } from "./workers/ring.tsx";
import { NoRounds, RoundTable } from "./workers/rounds.tsx";

export const workers: Page = {
  path: "/workers",
  section: "Workers",
  async render(request) {
    const kind = roundKinds.find((name) => name === request.query.get("kind"));
    const before = request.query.get("before") ?? "";
    const [live, rounds] = await Promise.all([
      request.db.run(liveWorkers()),
      request.db.run(
        listRounds({ kind, before: isNumber(before) ? before : undefined, limit: pageSize + 1 }),
      ),
    ]);
    return {
      title: "Workers",
      facts: <span class="muted">{counted(live.length, "live worker")}</span>,
      body: (
        <>
          {live.length === 0 ? <NoWorkers /> : <Living request={request} live={live} />}
          <AllRounds request={request} rounds={rounds} kind={kind} />
        </>
      ),
    };
  },
};

/** Ids of rounds are numbers of 64 bits. */
function isNumber(text: string): boolean {
  return /^\d{1,18}$/.test(text);
}

function Living({ request, live }: { request: PageRequest; live: readonly LiveWorker[] }) {
  const workersOf = Map.groupBy(
    live.flatMap(({ id, queues }) => queues.map((queue) => ({ id, queue }))),
    ({ queue }) => queue,
  );
  // The queue with the most workers comes first.
  const queues = [...workersOf]
    .toSorted(([a, ofA], [b, ofB]) => ofB.length - ofA.length || a.localeCompare(b))
    .map(([queue]) => queue);
  const asked = request.query.get("queue") ?? "";
  const queue = queues.includes(asked) ? asked : (queues[0] ?? "");
  const names = (workersOf.get(queue) ?? []).map(({ id }) => id);
  const ring: RingOfQueue = { queue, workers: names, owners: ownersOf(names) };
  return (
    <div class="aside">
      <LiveTable request={request} live={live} ring={ring} />
      <Ring ring={ring} queues={queues} />
    </div>
  );
}

interface LiveTableProps {
  request: PageRequest;
  live: readonly LiveWorker[];
  ring: RingOfQueue;
}

function LiveTable({ request, live, ring }: LiveTableProps) {
  const bucketsOf = (id: string) => ring.owners.filter((owner) => owner === id).length;
  const ofRing = (id: string, text: (buckets: number) => string) =>
    ring.workers.includes(id) ? text(bucketsOf(id)) : <None text="–" />;
  return (
    <Card
      id="live-workers"
      title="Live workers"
      note={<span class="muted small">buckets and shares are those of the queue {ring.queue}</span>}
    >
      <Table
        name="Live workers"
        rows={live}
        columns={[
          { title: "Worker", class: "nw", cell: ({ id }) => <Name id={id} ring={ring} /> },
          { title: "Kind", class: "hide-m", cell: ({ kind }) => kind },
          { title: "Queues", class: "wide hide-s", cell: ({ queues }) => <Queues queues={queues} /> },
          {
            title: "Heartbeat",
            class: "n",
            cell: ({ seenAt, expiresAt }) => (
              <span title={`gone at ${expiresAt.toISOString()} if no other follows`}>
                <Time at={seenAt} now={request.now} />
              </span>
            ),
          },
          { title: "Buckets", class: "n", cell: ({ id }) => ofRing(id, count) },
          {
            title: "Share",
            class: "n hide-s",
            cell: ({ id }) => ofRing(id, (buckets) => `${((buckets / bucketCount) * 100).toFixed(1)} %`),
          },
          {
            title: "Alive for",
            class: "n hide-s",
            cell: ({ startedAt }) => <Age at={startedAt} now={request.now} />,
          },
        ]}
      />
    </Card>
  );
}

function Name({ id, ring }: { id: string; ring: RingOfQueue }) {
  const index = ring.workers.indexOf(id);
  if (index < 0) return <>{id}</>;
  return (
    <span class="st">
      <span class={`sw ${hueOf(index)}`} aria-hidden="true">
        {labelOf(index)}
      </span>
      {id}
    </span>
  );
}

function Queues({ queues }: { queues: readonly string[] }) {
  return (
    <span class="chips row">
      {queues.map((queue) => (
        <a class="chip" href={queueUrl(queue)}>
          {queue}
        </a>
      ))}
    </span>
  );
}

function NoWorkers() {
  return (
    <Empty
      title="No live workers"
      example={`curl -X POST -H "authorization: Bearer $SLUICE_KEY" -H "content-type: application/json" \\
  $SLUICE_URL/v1/workers -d '{ "worker_id": "worker-1", "queues": ["default"] }'`}
    >
      Workers that share the partition keys of a queue are listed here while they live: pullers that register,
      and drains that go on. Each one's share is drawn as a ring. Jobs without a partition key need none of
      it.
    </Empty>
  );
}

interface AllRoundsProps {
  request: PageRequest;
  rounds: readonly ListedRound[];
  kind: RoundKind | undefined;
}

function AllRounds({ request, rounds, kind }: AllRoundsProps) {
  const { shown, next } = takePage(rounds, ({ id }) => id);
  if (shown.length === 0 && !kind && !request.query.has("before")) return <NoRounds />;
  return (
    <Card id="rounds" title="Rounds" note={<Kinds request={request} kind={kind} />}>
      {shown.length === 0 ? <p class="pad muted">None of this kind.</p> : null}
      {shown.length === 0 ? null : <RoundTable request={request} rounds={shown} name="Rounds" isDetailed />}
      <Pager request={request} next={next} />
    </Card>
  );
}

function Kinds({ request, kind }: { request: PageRequest; kind: RoundKind | undefined }) {
  return (
    <nav class="seg push" aria-label="Kind of rounds">
      {[undefined, ...roundKinds].map((name) => (
        <a
          href={urlWith(request, { kind: name, before: undefined })}
          aria-current={name === kind ? "true" : undefined}
        >
          {name ?? "all"}
        </a>
      ))}
    </nav>
  );
}
