// One sentence of truth: all is well, or what fires. A silenced alarm is named, but does not make it red.
import type { Snapshot } from "../../../core/snapshot.ts";
import type { FiringAlarm, Overview } from "../../../core/sql/overview.ts";
import { latestRate, seriesOf } from "../../history.ts";
import type { PageRequest } from "../../page.ts";
import { Truth } from "../../parts/figures.tsx";
import { jobsUrl } from "../../parts/links.tsx";
import { count, counted, wholeSeconds } from "../../parts/numbers.ts";
import { Age, Time } from "../../parts/time.tsx";

interface Props {
  request: PageRequest;
  shown: Overview;
  now: Snapshot;
}

export function SentenceOfTruth({ request, shown, now }: Props) {
  const isSilenced = ({ silencedUntil }: FiringAlarm) =>
    silencedUntil !== null && silencedUntil > request.now;
  const loud = shown.firing.filter((alarm) => !isSilenced(alarm));
  return (
    <Truth
      isAlarm={loud.length > 0}
      sentence={
        loud.length > 0 ? (
          <b>
            {loud.length === 1 ? "One alarm is firing." : `${numberWord(loud.length)} alarms are firing.`}
          </b>
        ) : (
          <>
            <b>All is well.</b> {wellText(now, shown)}
          </>
        )
      }
    >
      {loud.length > 0 ? (
        <ul>
          {loud.map((alarm) => (
            <Firing alarm={alarm} request={request} />
          ))}
        </ul>
      ) : null}
      {shown.firing.filter(isSilenced).map(({ alarm, summary, silencedUntil }) => (
        <p class="muted">
          Silenced
          {silencedUntil ? (
            <>
              , ends <Time at={silencedUntil} now={request.now} />
            </>
          ) : null}
          : <a href="/alarms">{alarm}</a>, {summary}
        </p>
      ))}
      {shown.pauses.map(({ kind, name, since }) => (
        <p class="muted">
          The {kind} {name} is paused, <Time at={since} now={request.now} />.
        </p>
      ))}
      {now.runningSince === null ? <p class="muted">No round has run yet: are the crons set up?</p> : null}
    </Truth>
  );
}

const words = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine"];

function numberWord(number: number): string {
  return words[number] ?? count(number);
}

function wellText(now: Snapshot, { history }: Overview): string {
  const oldest = Math.max(0, ...now.groups.map(({ oldestDueSeconds }) => oldestDueSeconds ?? 0));
  const rate = latestRate(seriesOf(history).completed, history);
  const done = `${counted(rate, "job")} a minute ${rate === 1 ? "is" : "are"} completed`;
  const isWaiting = now.groups.some(({ pending, scheduled }) => pending > scheduled);
  if (oldest > 0) return `${done}; the oldest due job has waited ${wholeSeconds(Math.floor(oldest))}.`;
  return isWaiting ? `${done}; the due jobs wait for others of their keys.` : `${done}; nothing is due.`;
}

function Firing({ alarm: firing, request }: { alarm: FiringAlarm; request: PageRequest }) {
  const { alarm, severity, summary, since, queue, jobType } = firing;
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
