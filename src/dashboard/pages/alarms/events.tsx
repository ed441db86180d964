// What happened to alarms, as a timeline.
import type { AlarmEvent } from "../../../core/sql/alarms.ts";
import type { PageRequest } from "../../page.ts";
import { wholeSeconds } from "../../parts/numbers.ts";
import { type Shape, StateShape } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";

const shapes: Record<AlarmEvent["event"], Shape> = {
  firing: "alarm",
  resolved: "ok",
  silenced: "silenced",
  unsilenced: "ok",
};
const verbs: Record<AlarmEvent["event"], string> = {
  firing: "firing",
  resolved: "resolved",
  silenced: "silenced",
  unsilenced: "no longer silenced",
};

export function Events({ request, events }: { request: PageRequest; events: readonly AlarmEvent[] }) {
  return (
    <ol class="line pad">
      {events.map((event) => (
        <li>
          <StateShape shape={shapes[event.event]} />
          <div class="when">
            <b>
              {event.alarm} {verbs[event.event]}
            </b>
            <span class="push muted">
              <Time at={event.at} now={request.now} />
            </span>
          </div>
          <p class="muted">
            <Details event={event} now={request.now} />
          </p>
        </li>
      ))}
    </ol>
  );
}

function Details({ event, now }: { event: AlarmEvent; now: Date }) {
  const { at, since, until, summary, actor, reason } = event;
  const why = reason ? `, “${reason}”` : "";
  switch (event.event) {
    case "firing":
      return <>{summary}</>;
    case "resolved":
      return (
        <>
          {summary}
          {since ? `, after ${wholeSeconds(Math.round((at.getTime() - since.getTime()) / 1000))}` : ""}
        </>
      );
    case "silenced":
      return (
        <>
          {until ? (
            <>
              ends <Time at={until} now={now} />,{" "}
            </>
          ) : null}
          by {actor}
          {why}
        </>
      );
    case "unsilenced":
      return (
        <>
          by {actor}
          {why}
        </>
      );
  }
}
