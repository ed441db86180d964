// One sentence of truth: all is well, or what fires. A silenced alarm is named, but does not make it red.
import type { AlarmState } from "../../../core/alarms/alarm.ts";
import type { Snapshot } from "../../../core/snapshot.ts";
import type { Alarms } from "../../../core/sql/alarms.ts";
import type { History } from "../../history.ts";
import type { PageRequest } from "../../page.ts";
import { Truth } from "../../parts/figures.tsx";
import { jobsUrl } from "../../parts/links.tsx";
import { counted, wholeSeconds } from "../../parts/numbers.ts";
import { Age } from "../../parts/time.tsx";

interface Props {
  request: PageRequest;
  alarms: Alarms;
  now: Snapshot;
  history: History;
}

export function SentenceOfTruth({ request, alarms, now, history }: Props) {
  const silences = alarms.silences.filter(({ until }) => until > request.now);
  const isSilenced = ({ alarm }: AlarmState) => silences.some((silence) => silence.alarm === alarm);
  const firing = alarms.alarms.map(({ state }) => state).filter(({ phase }) => phase === "firing");
  const loud = firing.filter((state) => !isSilenced(state));
  const quiet = firing.filter(isSilenced);
  return (
    <Truth
      isAlarm={loud.length > 0}
      sentence={
        loud.length > 0 ? (
          <b>{loud.length === 1 ? "One alarm is firing." : `${loud.length} alarms are firing.`}</b>
        ) : (
          <>
            <b>All is well.</b> {wellText(now, history)}
          </>
        )
      }
    >
      {loud.length > 0 ? (
        <ul>
          {loud.map((state) => (
            <Firing state={state} request={request} />
          ))}
        </ul>
      ) : null}
      {quiet.map(({ alarm, summary }) => (
        <p class="muted">
          Silenced: <a href="/alarms">{alarm}</a>, {summary}
        </p>
      ))}
      {now.runningSince === null ? <p class="muted">No round has run yet: are the crons set up?</p> : null}
    </Truth>
  );
}

function wellText(now: Snapshot, { completed }: History): string {
  const oldest = Math.max(0, ...now.groups.map(({ oldestDueSeconds }) => oldestDueSeconds ?? 0));
  const rate = completed.at(-1) ?? 0;
  const done = `${counted(rate, "job")} ${rate === 1 ? "was" : "were"} completed in the last minute`;
  return oldest > 0
    ? `${done}; the oldest due job has waited ${wholeSeconds(Math.floor(oldest))}.`
    : `${done}; nothing is due.`;
}

function Firing({ state, request }: { state: AlarmState; request: PageRequest }) {
  const { alarm, severity, summary, since, queue, jobType } = state;
  const kind = severity === "critical" ? "is-dead" : "is-warn";
  return (
    <li>
      <span class={`chip ${kind}`}>{severity}</span>
      <span>
        <b>{alarm}</b> {summary}
      </span>
      <span class="muted small">
        since <Age at={since} now={request.now} />
      </span>
      <a class="btn" href={jobsUrl({ queue: queue ?? undefined, type: jobType ?? undefined })}>
        Look
      </a>
      <a class="btn is-quiet" href="/alarms">
        Silence
      </a>
    </li>
  );
}
