// The four large numbers, and the sentence of truth.
import type { Child } from "hono/jsx";
import { StateShape } from "./state.tsx";

export interface Figure {
  name: string;
  value: string;
  unit: string;
  /** One line below the number. */
  note: Child;
  isAlarming?: boolean;
}

export function Figures({ figures }: { figures: readonly Figure[] }) {
  return (
    <dl class="card figures">
      {figures.map(({ name, value, unit, note, isAlarming }) => (
        <div class={isAlarming ? "t-dead" : undefined}>
          <dt>{name}</dt>
          <dd>
            <b>
              {value} <small>{unit}</small>
            </b>
            {note}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** One sentence says how things are. It is green only if nothing fires aloud. */
export function Truth({
  isAlarm,
  sentence,
  children,
}: {
  isAlarm: boolean;
  sentence: Child;
  children?: Child;
}) {
  return (
    <div class={`truth${isAlarm ? " is-alarm" : ""}`} role={isAlarm ? "alert" : "status"}>
      <StateShape shape={isAlarm ? "alarm" : "ok"} />
      <div>
        <p>{sentence}</p>
        {children}
      </div>
    </div>
  );
}
