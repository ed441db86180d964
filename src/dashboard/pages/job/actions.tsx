// What can be done about a job, by its state.
import type { ShownJob } from "../../../core/sql/jobs.ts";
import type { PageRequest } from "../../page.ts";
import { ActionForm, Field } from "../../parts/action-form.tsx";
import { Card } from "../../parts/card.tsx";

export function JobActions({ request, job }: { request: PageRequest; job: ShownJob }) {
  const forms = request.viewer.mayChange ? formsFor(request, job) : null;
  return forms ? (
    <Card id="actions" title="Actions">
      <div class="pad stack">{forms}</div>
    </Card>
  ) : null;
}

function formsFor(request: PageRequest, { id, status }: ShownJob) {
  switch (status) {
    case "dead":
      return (
        <>
          <Replay request={request} id={id} />
          <Discard request={request} id={id} />
        </>
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
    case "blocked":
      return (
        <>
          {status === "pending" ? (
            <ActionForm request={request} action="cancelJob" fields={{ id }} label="Cancel" />
          ) : null}
          <Resolve request={request} id={id} />
        </>
      );
    default:
      return null;
  }
}

interface FormProps {
  request: PageRequest;
  id: string;
}

function Replay({ request, id }: FormProps) {
  return (
    <>
      <ActionForm request={request} action="replayDeadLetter" fields={{ id }} label="Replay" kind="main" />
      <details>
        <summary>Replay with another payload</summary>
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
      </details>
    </>
  );
}

function Discard({ request, id }: FormProps) {
  return (
    <details>
      <summary>Discard</summary>
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
    </details>
  );
}

function Resolve({ request, id }: FormProps) {
  return (
    <details>
      <summary>Complete it by hand</summary>
      <ActionForm request={request} action="resolveJob" fields={{ id }} label="Complete it">
        <Field id="resolve-output" label="Output" hint="JSON. Jobs that wait for this one get it.">
          <textarea id="resolve-output" name="output" rows={3} required>
            null
          </textarea>
        </Field>
      </ActionForm>
    </details>
  );
}
