// The state of a type, and the button that changes it.
import type { PageRequest } from "../../page.ts";
import { ActionForm } from "../../parts/action-form.tsx";
import { type Shape, State } from "../../parts/state.tsx";
import type { ShownType } from "./shown-type.ts";

/** With `isShort` phones show the shape alone. */
export function TypeState({ shown, isShort = false }: { shown: ShownType; isShort?: boolean }) {
  return <State {...stateOf(shown)} isShort={isShort} />;
}

function stateOf({ definition, pausedSince, isOpen }: ShownType): { shape: Shape; word: string } {
  if (!definition) return { shape: "missed", word: "not in this deployment" };
  if (pausedSince) return { shape: "paused", word: "paused" };
  return isOpen ? { shape: "alarm", word: "breaker is open" } : { shape: "ok", word: "runs" };
}

export function PauseForm({ request, shown }: { request: PageRequest; shown: ShownType }) {
  if (!shown.definition) return null;
  return (
    <ActionForm
      request={request}
      action={shown.pausedSince ? "resumeJobType" : "pauseJobType"}
      fields={{ type: shown.type }}
      label={shown.pausedSince ? "Resume" : "Pause"}
    />
  );
}
