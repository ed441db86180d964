// The bars that Sluice must reach, each for one row: ratios within one run, counts, and a few promised times.
import type { PinPoint } from "../workloads/workload.ts";
import { numberText } from "./number-text.ts";
import { ratio, type SummaryRow } from "./summary.ts";

export interface Verdict {
  bar: string;
  reached: string;
  isMet: boolean;
}

type Row = Omit<SummaryRow, "verdict">;

interface Bar {
  what: RegExp;
  judge(row: Row, rows: readonly Row[], points: readonly PinPoint[]): Verdict | undefined;
}

const bars: readonly Bar[] = [
  { what: /^drain by 100, [48] connections$/, judge: timesBestPeer(1.8) },
  { what: /^drain by 10?, /, judge: timesBestPeer(1) },
  { what: /^enqueue by (1|100)$/, judge: enqueueBar },
  { what: /^claim of \d+, (?!2,000).*waiting/, judge: backlogBar },
  { what: /^pinned: server time/, judge: atMost(1.5, "×") },
  { what: /^pinned: buffers/, judge: atMost(80, "buffers") },
  { what: /^pinned: rate at the last mark$/, judge: pinnedRateBar },
  { what: /^what is left with four readers$/, judge: atLeast(95, "%") },
  { what: /^log of a job: claim and settle/, judge: atMost(250, "bytes") },
  { what: /^http: one drain/, judge: atLeast(6_000, "jobs/s") },
  // 1 for each batch; the last settle and the round's own two are spread over all batches.
  { what: /^http: round trips/, judge: atMost(2.1, "requests") },
  { what: /^pg: one drain/, judge: pgBar },
  { what: /^http: enqueue to start by nudge, p50$/, judge: atMost(100, "ms") },
  { what: /^[\d,]+ keys, by 100, /, judge: keysBar },
  { what: /^one hot key, /, judge: atLeast(10_000, "jobs/s") },
  { what: /^log of a keyed job: claim and settle/, judge: atMost(700, "bytes") },
  { what: /^keys, pinned: CPU/, judge: atMost(1.5, "×") },
  { what: /^keys, pinned: buffers/, judge: atMost(130, "buffers") },
  { what: /^ring: a claim of 100, /, judge: atMost(2, "×") },
  // Alone the ten take one claim; with a cap of 4 they take three.
  { what: /^ten behind .*, cap 4: claims until they start$/, judge: atMost(4, "claims") },
  { what: /^ten behind .*: claims until they start$/, judge: atMost(2, "claims") },
  { what: /^(enqueue|claim|settle) 10*0? plain: CPU/, judge: timesBefore(1.05) },
  { what: /^(enqueue|claim|settle) 10*0? plain: log/, judge: timesBefore(1.01) },
  { what: /^claim 10*0? plain: buffers/, judge: atMostMoreThanBefore(2, "buffers") },
  { what: /^500\/s: an enqueue, p50$/, judge: atMost(5, "ms") },
  { what: /^500\/s: an enqueue, p99$/, judge: atMost(50, "ms") },
  { what: /^500\/s: enqueue to start, p50$/, judge: atMost(2_000, "ms") },
  { what: /^500\/s: enqueue to start, p99$/, judge: atMost(30_000, "ms") },
];

export function judge(row: Row, rows: readonly Row[], points: readonly PinPoint[]): Verdict | undefined {
  return bars.find(({ what }) => what.test(row.what))?.judge(row, rows, points);
}

function timesBestPeer(least: number) {
  return ({ ratio }: Row): Verdict | undefined =>
    ratio === undefined
      ? undefined
      : { bar: `${least} × the best peer`, reached: times(ratio), isMet: ratio >= least };
}

function atMost(most: number, unit: string) {
  return ({ cells }: Row): Verdict | undefined =>
    compare(cells.sluice?.median, `at most ${numberText(most)} ${unit}`, most, "less");
}

function atLeast(least: number, unit: string) {
  return ({ cells }: Row): Verdict | undefined =>
    compare(cells.sluice?.median, `at least ${numberText(least)} ${unit}`, least, "more");
}

function compare(
  value: number | undefined,
  bar: string,
  limit: number,
  better: "more" | "less",
): Verdict | undefined {
  if (value === undefined) return undefined;
  return { bar, reached: numberText(value), isMet: ratio(value, limit, better) >= 1 };
}

function enqueueBar({ cells, better }: Row): Verdict | undefined {
  const { sluice, pgmq, ...jobQueues } = cells;
  const others = Object.values(jobQueues);
  if (!sluice || !pgmq || others.length === 0) return undefined;
  const toJobQueues = Math.min(...others.map((peer) => ratio(sluice.median, peer.median, better)));
  const toPgmq = ratio(sluice.median, pgmq.median, better);
  return {
    bar: "2 × pg-boss and graphile-worker, 1 × pgmq",
    reached: `${times(toJobQueues)}, ${times(toPgmq)}`,
    isMet: toJobQueues >= 2 && toPgmq >= 1,
  };
}

function backlogBar({ what, cells }: Row, rows: readonly Row[]): Verdict | undefined {
  const claim = what.split(",")[0];
  const small = rows.find((row) => row.what === `${claim}, 2,000 waiting, p50`)?.cells.sluice?.median;
  if (!cells.sluice || small === undefined) return undefined;
  const growth = cells.sluice.median / small;
  return { bar: "at most 1.5 × that of 2,000", reached: times(growth), isMet: growth <= 1.5 };
}

/** A drain over `pg` is not slower than one over HTTP. */
function pgBar({ cells, better }: Row, rows: readonly Row[]): Verdict | undefined {
  const byHttp = rows.find((row) => row.what === "http: one drain of echo jobs")?.cells.sluice?.median;
  if (!cells.sluice || byHttp === undefined) return undefined;
  const toHttp = ratio(cells.sluice.median, byHttp, better);
  return { bar: "1 × that by http", reached: times(toHttp), isMet: toHttp >= 1 };
}

/** A share of what plain jobs reach in the same rounds, and each job queue's own order by key. */
function keysBar({ what, cells, better }: Row, rows: readonly Row[]): Verdict | undefined {
  const plain = rows.find((row) => row.what === `plain, beside ${what}`)?.cells.sluice?.median;
  const { sluice, "pg-boss": pgBoss, "graphile-worker": graphile } = cells;
  if (!sluice || !pgBoss || !graphile || plain === undefined) return undefined;
  const toPlain = sluice.median / plain;
  const toPeers = [pgBoss, graphile].map((peer) => ratio(sluice.median, peer.median, better));
  return {
    bar: "0.5 × plain, 3 × pg-boss and graphile-worker",
    reached: [toPlain, ...toPeers].map(times).join(", "),
    isMet: toPlain >= 0.5 && Math.min(...toPeers) >= 3,
  };
}

/** Against another checkout (--beside). */
function timesBefore(most: number) {
  return ({ cells: { sluice, before } }: Row): Verdict | undefined => {
    if (!sluice || !before) return undefined;
    const growth = sluice.median / before.median;
    return { bar: `at most ${most} × before`, reached: times(growth), isMet: growth <= most };
  };
}

function atMostMoreThanBefore(most: number, unit: string) {
  return ({ cells: { sluice, before } }: Row): Verdict | undefined => {
    if (!sluice || !before) return undefined;
    const more = sluice.median - before.median;
    return { bar: `at most ${most} ${unit} more`, reached: numberText(more), isMet: more <= most };
  };
}

/** Against each peer at its last mark: Sluice's rate when as many jobs had gone through. */
function pinnedRateBar(_: Row, __: readonly Row[], points: readonly PinPoint[]): Verdict | undefined {
  const own = points.filter(({ system }) => system === "sluice");
  const peers = Map.groupBy(
    points.filter(({ system }) => system !== "sluice"),
    ({ system }) => system,
  );
  const ratios = [...peers.values()].flatMap((ofPeer) => {
    const last = ofPeer.at(-1);
    const same = own.find(({ churned }) => churned >= (last?.churned ?? 0)) ?? own.at(-1);
    return last && same ? [same.jobsPerSecond / last.jobsPerSecond] : [];
  });
  if (ratios.length === 0) return undefined;
  const least = Math.min(...ratios);
  return { bar: "10 × every peer at its last mark", reached: times(least), isMet: least >= 10 };
}

function times(value: number): string {
  return `${value.toFixed(2)} ×`;
}
