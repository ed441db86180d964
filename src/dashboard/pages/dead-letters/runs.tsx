// Runs over dead letters: the progress of one, and a table of them.
import type { DeadRun, RunOutcomes } from "../../../core/dead-letters.ts";
import type { PageRequest } from "../../page.ts";
import { ActionForm } from "../../parts/action-form.tsx";
import { Card } from "../../parts/card.tsx";
import { count, wholeSeconds } from "../../parts/numbers.ts";
import { State } from "../../parts/state.tsx";
import { Count, None, Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { formatFilter } from "./filter.ts";

/** "Replay 41". */
export function nameOfRun({ action, id }: DeadRun): string {
  return `${action === "replay" ? "Replay" : "Discard"} ${id}`;
}

export function describeRun(run: DeadRun): string {
  return formatFilter(run) || "all dead letters";
}

const past = { replay: "replayed", discard: "discarded" };
const stateNames = { running: "is running", done: "is done", stopped: "was stopped" };

export function RunCard({ request, run }: { request: PageRequest; run: DeadRun }) {
  const { id, state, note, actor, perMinute } = run;
  const name = nameOfRun(run);
  return (
    <section class="card" aria-labelledby={`run-${id}`} aria-live="polite">
      <header>
        <h2 id={`run-${id}`}>
          <a href={`/dead-letters/runs/${id}`}>
            {name} {stateNames[state]}
          </a>
        </h2>
        <span class="muted small">
          {describeRun(run)}
          {note ? `, “${note}”` : ""} by {actor},{" "}
          {perMinute === null ? "as fast as it goes" : `${count(perMinute)} a minute`}
        </span>
      </header>
      <div class="pad">
        <progress value={run.matched - run.remaining} max={Math.max(run.matched, 1)} aria-label={name}>
          {`${run.done} of ${run.matched}`}
        </progress>
      </div>
      <div class="pad row">
        <Progress run={run} />
        {state === "running" ? <Stop request={request} run={run} /> : null}
      </div>
    </section>
  );
}

function Progress({
  run: { action, done, matched, skipped, remaining, perMinute, state, outcomes },
}: {
  run: DeadRun;
}) {
  const secondsLeft = perMinute === null ? null : Math.ceil((remaining / perMinute) * 60);
  return (
    <span>
      <b>{count(done)}</b> of {count(matched)} {past[action]}
      {skipped > 0 ? `, ${count(skipped)} skipped` : ""}
      {outcomes ? `: ${outcomeWords(outcomes, done)}` : ""}.
      {state === "running" && secondsLeft !== null && secondsLeft > 0
        ? ` Done in ${wholeSeconds(secondsLeft)}.`
        : ""}
      {state === "stopped" && remaining > 0 ? ` The other ${count(remaining)} are dead, as they were.` : ""}
    </span>
  );
}

/** As "12 completed, 1 processing, none dead again". */
function outcomeWords({ jobs, completed, processing, dead }: RunOutcomes, done: number): string {
  const parts = [
    `${count(completed)} completed`,
    ...(processing > 0 ? [`${count(processing)} processing`] : []),
    `${dead === 0 ? "none" : count(dead)} dead again`,
  ];
  return `${jobs < done ? `of the first ${count(jobs)}, ` : ""}${parts.join(", ")}`;
}

function Stop({ request, run: { id, remaining } }: { request: PageRequest; run: DeadRun }) {
  if (!request.viewer.mayChange) return null;
  return (
    <span class="push row">
      {remaining > 0 ? (
        <span class="muted small">Stopping leaves the other {count(remaining)} dead, as they are.</span>
      ) : null}
      <ActionForm request={request} action="stopDeadRun" fields={{ run: id }} label="Stop" kind="danger" />
    </span>
  );
}

export function RunTable({ request, runs }: { request: PageRequest; runs: readonly DeadRun[] }) {
  return (
    <Table
      name="Runs over dead letters"
      rows={runs}
      columns={[
        {
          title: "Run",
          class: "nw",
          cell: (run) => <a href={`/dead-letters/runs/${run.id}`}>{nameOfRun(run)}</a>,
        },
        { title: "State", class: "nw", cell: ({ state }) => <RunState state={state} /> },
        {
          title: "What",
          class: "wide hide-s",
          cell: (run) => <span class="muted mono">{describeRun(run)}</span>,
        },
        { title: "Jobs", class: "n", cell: ({ done, matched }) => `${count(done)} of ${count(matched)}` },
        { title: "Skipped", class: "n hide-s", cell: ({ skipped }) => <Count value={skipped} /> },
        { title: "By", class: "hide-s", cell: ({ actor }) => actor },
        {
          title: "Ended",
          class: "n",
          cell: ({ endedAt }) =>
            endedAt ? <Time at={endedAt} now={request.now} /> : <None text="not yet" />,
        },
      ]}
    />
  );
}

export function RunState({ state }: { state: DeadRun["state"] }) {
  if (state === "running") return <State shape="processing" word="running" />;
  return state === "done" ? (
    <State shape="completed" word="finished" />
  ) : (
    <State shape="cancelled" word="stopped" />
  );
}

/** Those that have ended. */
export function PastRuns({ request, runs }: { request: PageRequest; runs: readonly DeadRun[] }) {
  return (
    <Card
      id="past"
      title="Runs before"
      note={
        <a class="push small" href="/dead-letters/runs">
          All runs
        </a>
      }
    >
      <RunTable request={request} runs={runs} />
    </Card>
  );
}
