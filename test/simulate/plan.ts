// What happens to the workers of a simulation, and when. It follows from a seed, so a run can be repeated.
import { createRandom } from "../support/seeded-random.ts";

export type EventKind = "join" | "die" | "hang" | "go on" | "leave" | "return";

export interface PlannedEvent {
  atMs: number;
  kind: EventKind;
  worker: string;
}

export interface PlanOptions {
  workers: number;
  seconds: number;
  /** How often something happens. */
  everyMs: number;
  /** How long a worker hangs. */
  hangMs: number;
  seed: number;
}

const kinds = ["join", "die", "hang", "return", "leave"] as const;

/** All workers join at the start. Then one event follows the other, each kind in its turn. */
export function planEvents({ workers, seconds, everyMs, hangMs, seed }: PlanOptions): PlannedEvent[] {
  const random = createRandom(seed);
  const live = Array.from({ length: workers }, (_, n) => `w${n + 1}`);
  const away: string[] = [];
  const hanging = new Map<string, number>();
  const events: PlannedEvent[] = live.map((worker) => ({ atMs: 0, kind: "join", worker }));
  for (let n = 0, atMs = everyMs; atMs < seconds * 1000; n++, atMs += everyMs) {
    const free = live.filter((worker) => (hanging.get(worker) ?? 0) <= atMs);
    const [kind, worker] = choose(kinds[n % kinds.length] ?? "join", {
      free,
      away,
      random,
      next: nextName(live, away),
    });
    if (kind === "join" || kind === "return") live.push(worker);
    if (kind === "return") away.splice(away.indexOf(worker), 1);
    if (kind === "die" || kind === "leave") away.push(...live.splice(live.indexOf(worker), 1));
    events.push({ atMs, kind, worker });
    if (kind !== "hang") continue;
    hanging.set(worker, atMs + hangMs + everyMs);
    events.push({ atMs: atMs + hangMs, kind: "go on", worker });
  }
  return events.toSorted((a, b) => a.atMs - b.atMs);
}

/** Two workers always stay. If nobody is away, somebody joins instead of returning. */
function choose(
  kind: (typeof kinds)[number],
  from: {
    free: readonly string[];
    away: readonly string[];
    random: ReturnType<typeof createRandom>;
    next: string;
  },
): [EventKind, string] {
  const pick = (names: readonly string[]) => names[from.random.int(0, names.length - 1)] ?? from.next;
  if (kind === "join" || (kind === "return" && from.away.length === 0)) return ["join", from.next];
  if (kind === "return") return ["return", pick(from.away)];
  return from.free.length > 2 ? [kind, pick(from.free)] : ["join", from.next];
}

function nextName(live: readonly string[], away: readonly string[]): string {
  return `w${live.length + away.length + 1}`;
}
