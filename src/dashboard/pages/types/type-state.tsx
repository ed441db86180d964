// The state of a type, and the button that changes it.
import type { PageRequest } from "../../page.ts";
import { ActionForm } from "../../parts/action-form.tsx";
import { State } from "../../parts/state.tsx";
import type { ShownType } from "./shown-type.ts";

export function TypeState({ shown: { definition, pausedSince, isOpen } }: { shown: ShownType }) {
  if (!definition) return <State shape="missed" word="not in this deployment" />;
  if (pausedSince) return <State shape="paused" word="paused" />;
  if (isOpen) return <State shape="alarm" word="breaker is open" />;
  return <State shape="ok" word="runs" />;
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
