// Draws a simulation as SVG. Above: the owner of each bucket over time, as a color. Below: a line for each worker with what
// happened to it. The buckets are sorted by who owned them, so a change shows as new strips.
import { bucketCount } from "../../src/core/policy/hash-ring.ts";
import { isCompletion } from "./history.ts";
import { describeChange, sortNames } from "./report.ts";
import type { RingChange } from "./ring-log.ts";
import type { Simulation } from "./simulate.ts";

const width = 1000;
const map = { left: 60, right: 760, top: 64, height: bucketCount };
const lineHeight = 20;

export function ringChart(simulation: Simulation): string {
  const { changes, endedMs } = simulation;
  const names = sortNames([...new Set(changes.flatMap(({ workers }) => workers))]);
  const colorOf = (worker: string) => color(names.indexOf(worker), names.length);
  const xOf = (ms: number) => map.left + (ms / endedMs) * (map.right - map.left);
  const linesTop = map.top + map.height + 44;
  const height = linesTop + names.length * lineHeight + 30;
  const parts = [
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    text(map.left, 28, title(simulation), { size: 17, weight: 600 }),
    text(
      map.left,
      48,
      "The owner of each of the 360 buckets over time. Vertical lines: the live workers changed.",
      {},
    ),
    ...drawMap(simulation, xOf, colorOf),
    ...drawChanges(changes, xOf),
    ...drawSeconds(endedMs, xOf),
    ...names.flatMap((worker, index) =>
      drawWorker(simulation, worker, { y: linesTop + index * lineHeight, xOf, fill: colorOf(worker) }),
    ),
    text(map.left, height - 10, "× died   ‖ hung   ▸ went on or returned   ○ left", { size: 11 }),
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif" role="img">
<title>${escaped(title(simulation))}</title>
${parts.join("\n")}
</svg>
`;
}

function title({ options, violations }: Simulation): string {
  const found = violations.length === 0 ? "no law violated" : `${violations.length} violations`;
  return `${options.jobs.toLocaleString("en")} jobs of ${options.keys} keys on a ring of workers: ${found}`;
}

/** One path for each owner and stretch of time: all its strips. */
function drawMap(
  { changes, endedMs }: Simulation,
  xOf: (ms: number) => number,
  colorOf: (id: string) => string,
): string[] {
  const order = sortedBuckets(changes);
  return changes.flatMap(({ atMs, owners }, index) => {
    const [x, end] = [xOf(atMs), xOf(changes[index + 1]?.atMs ?? endedMs)];
    const strips = Map.groupBy(stripsOf(order.map((bucket) => owners[bucket] ?? "")), ({ owner }) => owner);
    return [...strips].map(([owner, own]) => {
      const path = own.map(
        ({ from, length }) => `M${fixed(x)} ${map.top + from}H${fixed(end)}v${length}H${fixed(x)}z`,
      );
      return `<path d="${path.join("")}" fill="${colorOf(owner)}"/>`;
    });
  });
}

/** Buckets that always had the same owners come together. */
function sortedBuckets(changes: readonly RingChange[]): number[] {
  const historyOf = (bucket: number) =>
    changes.map(({ owners }) => (owners[bucket] ?? "").padStart(4)).join();
  return Array.from({ length: bucketCount }, (_, bucket) => ({ bucket, history: historyOf(bucket) }))
    .toSorted((a, b) => (a.history < b.history ? -1 : Number(a.history > b.history)))
    .map(({ bucket }) => bucket);
}

function stripsOf(owners: readonly string[]): { owner: string; from: number; length: number }[] {
  const strips: { owner: string; from: number; length: number }[] = [];
  for (const [from, owner] of owners.entries()) {
    const last = strips.at(-1);
    if (last?.owner === owner) last.length++;
    else strips.push({ owner, from, length: 1 });
  }
  return strips;
}

/** The first change is the start. */
function drawChanges(changes: readonly RingChange[], xOf: (ms: number) => number): string[] {
  const bottom = map.top + map.height;
  return changes.slice(1).flatMap((change, index) => {
    const x = fixed(xOf(change.atMs));
    const moved = `${describeChange(change)}: ${change.bucketsMoved} of ${bucketCount}`;
    return [
      `<line x1="${x}" x2="${x}" y1="${map.top}" y2="${bottom}" stroke="#222222" stroke-width="1"/>`,
      text(xOf(change.atMs), map.top - 4, String(index + 1), { size: 10, anchor: "middle" }),
      text(map.right + 12, map.top + 10 + index * 15, `${index + 1}  ${moved}`, { size: 11 }),
    ];
  });
}

function drawSeconds(endedMs: number, xOf: (ms: number) => number): string[] {
  const stepMs = endedMs > 20_000 ? 5_000 : 1_000;
  const marks = Array.from({ length: Math.floor(endedMs / stepMs) + 1 }, (_, index) => index * stepMs);
  return marks.map((ms) =>
    text(xOf(ms), map.top + map.height + 16, `${ms / 1000} s`, { size: 11, anchor: "middle" }),
  );
}

const signs = { die: "×", hang: "‖", "go on": "▸", return: "▸", leave: "○", join: "" } as const;

/** Thick while the registry has it. */
function drawWorker(
  { changes, events, endedMs, history }: Simulation,
  worker: string,
  { y, xOf, fill }: { y: number; xOf: (ms: number) => number; fill: string },
): string[] {
  const done = history.attempts.filter(
    (attempt) => attempt.worker === worker && isCompletion(attempt),
  ).length;
  const bars = changes.flatMap(({ atMs, workers }, index) => {
    if (!workers.includes(worker)) return [];
    const [x, end] = [xOf(atMs), xOf(changes[index + 1]?.atMs ?? endedMs)];
    return [`<rect x="${fixed(x)}" y="${y - 5}" width="${fixed(end - x)}" height="8" fill="${fill}"/>`];
  });
  const marks = events
    .filter((event) => event.worker === worker && signs[event.kind] !== "" && event.atMs <= endedMs)
    .map((event) =>
      text(xOf(event.atMs), y + 4, signs[event.kind], { size: 15, weight: 700, anchor: "middle" }),
    );
  return [
    text(map.left - 10, y + 4, worker, { size: 12, anchor: "end" }),
    ...bars,
    ...marks,
    text(map.right + 12, y + 4, `${done.toLocaleString("en")} jobs`, { size: 11 }),
  ];
}

function color(index: number, count: number): string {
  const lightness = index % 2 === 0 ? 46 : 62;
  return `hsl(${Math.round((360 * index) / Math.max(count, 1))} 55% ${lightness}%)`;
}

function text(
  x: number,
  y: number,
  content: string,
  { size = 12, weight = 400, anchor = "start" }: { size?: number; weight?: number; anchor?: string },
): string {
  return `<text x="${fixed(x)}" y="${fixed(y)}" font-size="${size}" font-weight="${weight}" text-anchor="${anchor}" fill="#333333">${escaped(content)}</text>`;
}

function fixed(value: number): string {
  return value.toFixed(1);
}

function escaped(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
