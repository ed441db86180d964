// The durable steps of a job: when each ran, slept or waited, and what it returned.
import type { JobStep } from "../../../core/job-steps.ts";
import { Card } from "../../parts/card.tsx";
import { counted } from "../../parts/numbers.ts";
import { StateShape } from "../../parts/state.tsx";
import { None, Table } from "../../parts/table.tsx";
import { lengthOfStep, partsOfStep, spanOf, stateOfStep, whenColumn } from "../../parts/waterfall.tsx";

export function Steps({ steps, now }: { steps: readonly JobStep[]; now: Date }) {
  if (steps.length === 0) return null;
  const times = steps.flatMap(({ startedAt, endedAt }) =>
    [startedAt, endedAt].flatMap((at) => (at ? [at.getTime()] : [])),
  );
  const isOver = steps.every(({ endedAt }) => endedAt !== null && endedAt <= now);
  const span = times.length > 0 ? spanOf(times, { isOver, nowMs: now.getTime() }) : null;
  return (
    <Card
      id="steps"
      title="Steps"
      note={<span class="muted small">{counted(steps.length, "durable step")}</span>}
    >
      <Table
        name="Steps"
        rows={steps}
        columns={[
          { title: "Step", class: "nw", cell: (step) => <StepName step={step} now={now} /> },
          ...(span ? [whenColumn<JobStep>(span, (step) => partsOfStep(step, now))] : []),
          { title: "Took", class: "n", cell: (step) => lengthOfStep(step, now) ?? <None text="not known" /> },
          { title: "Value", class: "hide-s", cell: (step) => <Value step={step} /> },
        ]}
      />
      {span ? (
        <p class="pad small muted">
          Thick: it ran. Thin: it slept or waited.{span.nowMs < span.toMs ? " Dashed: now." : ""}
        </p>
      ) : null}
    </Card>
  );
}

/** What is stored has the kind before the name: "sleep:night". Here it is a word after it: "night slept". */
export function StepName({ step, now }: { step: JobStep; now: Date }) {
  const { shape, word } = stateOfStep(step, now);
  const name = step.kind === "run" ? step.name : step.name.replace(`${step.kind}:`, "");
  return (
    <span class="st" title={step.name}>
      <StateShape shape={shape} />
      {name} <span class="muted small">{word}</span>
    </span>
  );
}

/** Of a value, before it is opened. */
const maxCharacters = 24;

function Value({ step: { kind, value } }: { step: JobStep }) {
  // The value of a sleep is its end, which the bar shows.
  if (value === undefined || kind === "sleep") return <None text="–" />;
  const text = JSON.stringify(value);
  if (text.length <= maxCharacters) return <code>{text}</code>;
  return (
    <details>
      <summary>
        <code>{text.slice(0, maxCharacters)}…</code>
      </summary>
      <pre tabindex={0} role="group" aria-label="Value">
        {JSON.stringify(value, null, 2)}
      </pre>
    </details>
  );
}
