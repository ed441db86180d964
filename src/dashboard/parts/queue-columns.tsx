// The columns that say what is in a queue, of every table of queues.
import { Bar } from "./bar.tsx";
import { type ShownCounts, segmentsOf } from "./books.ts";
import { jobsUrl } from "./links.tsx";
import { count, wholeSeconds } from "./numbers.ts";
import { type Column, Count, None } from "./table.tsx";

interface QueueRow {
  queue: string;
  counts: ShownCounts;
  oldestSeconds: number | null;
}

export const stateColumns: readonly Column<QueueRow>[] = [
  {
    title: "Jobs by state",
    class: "wide",
    cell: ({ queue, counts }) => <Bar name={queue} segments={segmentsOf(counts)} />,
  },
  {
    title: "Due",
    class: "n",
    cell: ({ counts }) => <Count value={counts.pending - counts.scheduled} />,
  },
  { title: "Later", class: "n hide-m", cell: ({ counts }) => <Count value={counts.scheduled} /> },
  { title: "Blocked", class: "n hide-m", cell: ({ counts }) => <Count value={counts.blocked} /> },
  { title: "Processing", class: "n hide-s", cell: ({ counts }) => <Count value={counts.leased} /> },
  { title: "Dead", class: "n", cell: ({ queue, counts }) => <Dead of={{ queue }} dead={counts.dead} /> },
];

export const oldestColumn: Column<QueueRow> = {
  title: "Oldest due",
  class: "n hide-s",
  cell: ({ oldestSeconds }) => (oldestSeconds === null ? <None /> : wholeSeconds(oldestSeconds)),
};

/** Leads to the dead jobs of a queue or a type. */
export function Dead({ of, dead }: { of: Record<string, string>; dead: number }) {
  if (dead === 0) return <Count value={0} />;
  return (
    <a class="t-dead strong" href={jobsUrl({ ...of, status: "dead" })}>
      {count(dead)}
    </a>
  );
}
