// The hash ring of a queue as a picture: one shape for each worker, with all of its arcs.
import { bucketCount } from "../../../core/policy/hash-ring.ts";
import { Card } from "../../parts/card.tsx";
import { queueUrl } from "../../parts/links.tsx";
import { count, counted } from "../../parts/numbers.ts";

export interface RingOfQueue {
  queue: string;
  /** By name. */
  workers: readonly string[];
  /** The owner of each bucket. */
  owners: readonly string[];
}

const centre = 160;
const radius = { outer: 132, inner: 100 };
const hues = 8;
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/** A letter for each of the first workers, and a number for the others. */
export function labelOf(index: number): string {
  return letters[index] ?? String(index + 1);
}

export function hueOf(index: number): string {
  return `h${(index * 3 + 4) % hues}`; // neighbours in the list differ much
}

export function Ring({ ring, queues }: { ring: RingOfQueue; queues: readonly string[] }) {
  const { queue, workers, owners } = ring;
  const arcs = Map.groupBy(arcsOf(owners), ({ owner }) => owner);
  const owned = (worker: string) => owners.filter((owner) => owner === worker).length;
  return (
    <Card id="ring" title="Hash ring" note={<span class="muted small">who takes which keys</span>}>
      <div class="pad stack">
        <QueueChoice queue={queue} queues={queues} />
        <svg class="ring" viewBox="0 0 320 320" role="img" aria-labelledby="ring-t ring-d">
          <title id="ring-t">{`Hash ring of the queue ${queue}`}</title>
          <desc id="ring-d">
            {workers.map((worker) => `${worker} has ${counted(owned(worker), "bucket")}`).join(", ")}
          </desc>
          {workers.map((worker, index) => (
            <path class={hueOf(index)} d={(arcs.get(worker) ?? []).map(toPath).join("")}>
              <title>{`${labelOf(index)} ${worker}: ${counted(owned(worker), "bucket")}`}</title>
            </path>
          ))}
          <text class="big" x={centre} y={centre}>
            {bucketCount}
          </text>
          <text x={centre} y={centre + 20}>
            {`buckets, ${counted(workers.length, "worker")}`}
          </text>
          {[0, 90, 180, 270].map((bucket) => {
            const [x, y] = pointAt(bucket, radius.outer + 14);
            return (
              <text x={x} y={y + 4}>
                {bucket}
              </text>
            );
          })}
        </svg>
        <p class="small muted">
          A partition key of <a href={queueUrl(queue)}>{queue}</a> belongs to one of {count(bucketCount)}{" "}
          buckets, and each bucket to one worker. When a worker comes or goes, only its own buckets move.
        </p>
      </div>
    </Card>
  );
}

function QueueChoice({ queue, queues }: { queue: string; queues: readonly string[] }) {
  if (queues.length < 2) return null;
  return (
    <nav class="chips" aria-label="Queue of the ring">
      {queues.map((name) => (
        <a
          class="chip mono"
          href={`/workers?queue=${encodeURIComponent(name)}`}
          aria-current={name === queue ? "true" : undefined}
        >
          {name}
        </a>
      ))}
    </nav>
  );
}

export interface Arc {
  owner: string;
  from: number;
  /** The bucket after its last. */
  to: number;
}

/** Neighbouring buckets of one worker are one arc. None crosses bucket 0. */
export function arcsOf(owners: readonly string[]): Arc[] {
  const arcs: Arc[] = [];
  owners.forEach((owner, bucket) => {
    const last = arcs.at(-1);
    if (last?.owner === owner) last.to = bucket + 1;
    else arcs.push({ owner, from: bucket, to: bucket + 1 });
  });
  return arcs;
}

/** A whole ring has two halves: an arc that ends where it begins is not drawn. */
function toPath({ owner, from, to }: Arc): string {
  const half = bucketCount / 2;
  if (to - from > half)
    return toPath({ owner, from, to: from + half }) + toPath({ owner, from: from + half, to });
  const { outer, inner } = radius;
  const corner = (bucket: number, at: number) => pointAt(bucket, at).join(" ");
  return (
    `M${corner(from, outer)}A${outer} ${outer} 0 0 1 ${corner(to, outer)}` +
    `L${corner(to, inner)}A${inner} ${inner} 0 0 0 ${corner(from, inner)}z`
  );
}

/** Bucket 0 is at the top, and they go clockwise. */
function pointAt(bucket: number, at: number): [number, number] {
  const angle = (bucket / bucketCount) * 2 * Math.PI;
  const place = (value: number) => Math.round((centre + at * value) * 10) / 10;
  return [place(Math.sin(angle)), place(-Math.cos(angle))];
}
