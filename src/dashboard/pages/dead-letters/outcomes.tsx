// What has become of the jobs that a run has replayed.
import type { DeadRun, RunOutcomes } from "../../../core/dead-letters.ts";
import { Bar, type Segment } from "../../parts/bar.tsx";
import { Card } from "../../parts/card.tsx";
import { count, counted } from "../../parts/numbers.ts";
import { State } from "../../parts/state.tsx";

export function Outcomes({ run: { outcomes, done } }: { run: DeadRun }) {
  if (!outcomes) return null;
  const segments = segmentsOf(outcomes);
  return (
    <Card
      id="outcomes"
      title="What became of them"
      note={
        <span class="muted small">
          {outcomes.jobs < done
            ? `the first ${counted(outcomes.jobs, "job")} that it replayed`
            : `${counted(outcomes.jobs, "replayed job")}, as they are now`}
        </span>
      }
    >
      <div class="pad">
        <Bar name="Replayed jobs" segments={segments} />
      </div>
      <div class="pad row facts">
        {segments
          .filter(({ value }) => value > 0)
          .map(({ shape, word, value }) => (
            <State shape={shape} word={`${count(value)} ${word}`} />
          ))}
      </div>
    </Card>
  );
}

function segmentsOf({ completed, dead, waiting, processing, other }: RunOutcomes): Segment[] {
  return [
    { shape: "completed", word: "completed", value: completed },
    { shape: "processing", word: "processing", value: processing },
    { shape: "pending", word: "waiting", value: waiting },
    { shape: "cancelled", word: "cancelled, discarded or no longer stored", value: other },
    { shape: "dead", word: "died again", value: dead },
  ];
}
