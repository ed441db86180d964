// What can be done about a job, by its state.
import type { Child } from "hono/jsx";
import type { ShownJob } from "../../../core/sql/jobs.ts";
import type { PageRequest } from "../../page.ts";
import { ActionForm, Field } from "../../parts/action-form.tsx";
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
  return (
    <details>
      <summary>Replay with another payload</summary>
      <div class="pad">
        <ActionForm
          request={request}
          action="replayDeadLetter"
          fields={{ id }}
          label="Replay with this payload"
        >
          <Field id="new-payload" label="Payload" hint="The whole payload as JSON, not only what differs.">
            <textarea id="new-payload" name="payload" rows={4} required />
          </Field>
        </ActionForm>
      </div>
    </details>
  );
}

function Discard({ request, id }: FormProps) {
  return (
    <details>
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
          <Field id="reason" label="Reason" hint="The audit log shows it.">
            <input id="reason" name="reason" />
          </Field>
        </ActionForm>
      </div>
    </details>
  );
}

function Resolve({ request, id }: FormProps) {
  return (
    <details>
      <summary>Complete it by hand</summary>
      <div class="pad">
        <ActionForm request={request} action="resolveJob" fields={{ id }} label="Complete it">
          <Field id="resolve-output" label="Output" hint="JSON. Jobs that wait for this one get it.">
            <textarea id="resolve-output" name="output" rows={3} required>
              null
            </textarea>
          </Field>
        </ActionForm>
      </div>
    </details>
  );
}
