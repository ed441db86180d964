// What can be done about a job, by its state.
import type { Child } from "hono/jsx";
import type { ShownJob } from "../../../core/sql/shown-jobs.ts";
import type { PageRequest } from "../../page.ts";
import { ActionForm, Input, refusalOf, TextArea } from "../../parts/action-form.tsx";
import { Card } from "../../parts/card.tsx";

interface Props {
  request: PageRequest;
  job: ShownJob;
}

/** What needs no more than a click. */
export function QuickActions({ request, job: { id, status } }: Props) {
  switch (status) {
    case "dead":
      return (
        <ActionForm request={request} action="replayDeadLetter" fields={{ id }} label="Replay" kind="main" />
      );
    case "processing":
      return (
        <ActionForm
          request={request}
          action="cancelJob"
          fields={{ id, running: "true" }}
          label="Ask it to stop"
        />
      );
    case "pending":
      return <ActionForm request={request} action="cancelJob" fields={{ id }} label="Cancel" />;
    default:
      return null;
  }
}

export function MoreActions({ request, job: { id, status } }: Props) {
  if (!request.viewer.mayChange) return null;
  if (status === "dead")
    return (
      <ActionCard>
        <ReplayWith request={request} id={id} />
        <Discard request={request} id={id} />
      </ActionCard>
    );
  if (status === "pending" || status === "blocked")
    return (
      <ActionCard>
        <Resolve request={request} id={id} />
      </ActionCard>
    );
  return null;
}

function ActionCard({ children }: { children: Child }) {
  return (
    <Card id="actions" title="More actions">
      {children}
    </Card>
  );
}

interface FormProps {
  request: PageRequest;
  id: string;
}

function ReplayWith({ request, id }: FormProps) {
  const refusal = refusalOf(request, "replayDeadLetter");
  return (
    <details open={refusal !== undefined}>
      <summary>Replay with another payload</summary>
      <div class="pad">
        <ActionForm
          request={request}
          action="replayDeadLetter"
          fields={{ id }}
          label="Replay with this payload"
        >
          <TextArea
            refusal={refusal}
            id="new-payload"
            name="payload"
            label="Payload"
            hint="The whole payload as JSON, not only what differs."
            control={{ rows: 4, required: true }}
          />
        </ActionForm>
      </div>
    </details>
  );
}

function Discard({ request, id }: FormProps) {
  const refusal = refusalOf(request, "discardDeadLetter");
  return (
    <details open={refusal !== undefined}>
      <summary>Discard</summary>
      <div class="pad">
        <ActionForm
          request={request}
          action="discardDeadLetter"
          fields={{ id }}
          label="Discard"
          kind="danger"
          confirm="Discard this job? It will never run."
        >
          <Input refusal={refusal} name="reason" label="Reason" hint="The audit log shows it." />
        </ActionForm>
      </div>
    </details>
  );
}

function Resolve({ request, id }: FormProps) {
  const refusal = refusalOf(request, "resolveJob");
  return (
    <details open={refusal !== undefined}>
      <summary>Complete it by hand</summary>
      <div class="pad">
        <ActionForm request={request} action="resolveJob" fields={{ id }} label="Complete it">
          <TextArea
            refusal={refusal}
            id="resolve-output"
            name="output"
            label="Output"
            hint="JSON. Jobs that wait for this one get it."
            value="null"
            control={{ rows: 3, required: true }}
          />
        </ActionForm>
      </div>
    </details>
  );
}
