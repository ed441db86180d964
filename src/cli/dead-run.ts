// A run over dead letters: what is shown of it, and its progress until it ends.
import { setTimeout as sleep } from "node:timers/promises";
import type { DeadRunResponse } from "../contract/dead-letters.ts";
import type { CommandContext } from "./command.ts";
import type { Column, Output } from "./output/output.ts";
import { count, plural } from "./output/words.ts";

const lookEveryMs = 1_000;
/** In a pipe or a log. On a terminal the line is written over. */
const tellEveryLooks = 10;

export const runColumns: readonly Column<DeadRunResponse>[] = [
  ["RUN", (run) => run.run_id],
  ["ACTION", ({ action }) => action],
  ["STATE", ({ state }) => state],
  ["DONE", ({ done }) => count(done)],
  ["SKIPPED", ({ skipped }) => count(skipped)],
  ["REMAINING", ({ remaining }) => count(remaining)],
  ["WHICH", filterWords],
  ["STARTED", (run) => run.started_at],
  ["ACTOR", ({ actor }) => actor],
];

function filterWords({ type, reason, fingerprint, queue }: DeadRunResponse): string {
  const given = Object.entries({ type, reason, fingerprint, queue }).filter(([, value]) => value !== null);
  return given.map(([name, value]) => `${name} ${value}`).join(", ") || "all";
}

export function showRun(run: DeadRunResponse, { api, out }: CommandContext): void {
  if (out.isJson) return void out.json(run);
  out.line(
    `run ${run.run_id} ${run.state === "running" ? "has started" : `is ${run.state}`}: ${progressOf(run)}`,
  );
  const outcomes = outcomesOf(run);
  if (outcomes) out.note(outcomes);
  if (run.state === "running")
    out.note(
      `${api.isOverSql ? "it goes on with the next crons; " : ""}sluice dead run ${run.run_id} shows it, sluice dead stop ${run.run_id} stops it`,
    );
}

/** Ctrl-C ends the look at the run, not the run. */
export async function followRun(started: DeadRunResponse, context: CommandContext): Promise<void> {
  const { api, out, stopped } = context;
  let run = started;
  for (let looks = 0; run.state === "running" && !stopped.aborted; looks++) {
    if (out.isTerminal) out.progress(progressOf(run));
    else if (looks % tellEveryLooks === 0) out.note(progressOf(run));
    await sleep(lookEveryMs, undefined, { signal: stopped }).catch(() => {});
    run = await api.call("getDeadRun", { path: { run: run.run_id } });
  }
  if (out.isTerminal) out.progress("");
  showRun(run, context);
}

/** What matters first. What was not asked for is left out. */
export function showRunFields(run: DeadRunResponse, out: Output): void {
  const { run_id, action, state, matched, done, skipped, remaining, outcomes: _, skips, ...rest } = run;
  const given = Object.entries(rest).filter(([, value]) => value !== null);
  out.fields({
    ...{ run_id, action, state, matched, done, skipped, remaining },
    ...(action === "replay" && { outcomes: outcomesOf(run) ?? "none yet" }),
    ...Object.fromEntries(given),
  });
  for (const { job_id, reason } of skips) out.fields({ [`skipped ${job_id}`]: reason });
}

/** What has become of the jobs that a run has replayed. Planned ones wait too, so there may be more than are done. */
function outcomesOf({ outcomes, done }: DeadRunResponse): string | undefined {
  if (!outcomes) return undefined;
  const { jobs, completed, dead, waiting, processing, other } = outcomes;
  const parts = [
    `${count(completed)} completed`,
    `${count(dead)} died again`,
    `${count(waiting)} waiting`,
    `${count(processing)} processing`,
    ...(other > 0 ? [`${count(other)} cancelled, discarded or no longer stored`] : []),
  ];
  return `${jobs < done ? `of the first ${count(jobs)}: ` : ""}${parts.join(", ")}`;
}

function progressOf({ action, done, skipped, remaining }: DeadRunResponse): string {
  const more = [
    ...(skipped > 0 ? [`${count(skipped)} skipped`] : []),
    ...(remaining > 0 ? [`${count(remaining)} to go`] : []),
  ];
  return [`${plural(done, "dead letter")} ${action}ed`, ...more].join(", ");
}
