// A form that enqueues a job, made from the schema of the payload.
import type { JobDefinition } from "../../../jobs/define.ts";
import { nameOfField } from "../../form-fields.ts";
import type { PageRequest } from "../../page.ts";
import { ActionForm, Field } from "../../parts/action-form.tsx";
import { Card } from "../../parts/card.tsx";
import { type PayloadField, payloadForm } from "./payload-fields.ts";

export function EnqueueForm({ request, definition }: { request: PageRequest; definition: JobDefinition }) {
  const { fields, example } = payloadForm(definition.payload);
  return (
    <Card id="enqueue" title="Enqueue a job">
      <div class="pad">
        <ActionForm
          request={request}
          action="enqueueJob"
          // A form that is sent twice makes one job.
          fields={{ type: definition.type, idempotency_key: crypto.randomUUID() }}
          label="Enqueue 1 job"
          kind="main"
        >
          {fields ? (
            fields.map((field) => <PayloadInput field={field} />)
          ) : (
            <Field id="payload" label="Payload, JSON">
              <textarea id="payload" name="payload" rows={8} spellcheck={false} required>
                {JSON.stringify(example, null, 2)}
              </textarea>
            </Field>
          )}
          {fields?.length === 0 ? <p class="muted">Its payload has no fields.</p> : null}
          <Field id="delay_seconds" label="Delay, seconds" hint="Empty: it is due at once.">
            <input id="delay_seconds" name="delay_seconds" type="number" min="0" />
          </Field>
        </ActionForm>
      </div>
    </Card>
  );
}

function PayloadInput({ field }: { field: PayloadField }) {
  const { name, kind, isRequired, description } = field;
  const id = `field-${name}`;
  const kindText = field.isWhole ? "whole number" : kind === "string" ? "text" : kind;
  return (
    <Field
      id={id}
      label={`${name}, ${kind === "enum" ? "one of" : kindText}${isRequired ? "" : ", optional"}`}
      hint={description}
    >
      <Control id={id} field={field} />
    </Field>
  );
}

function Control({ id, field }: { id: string; field: PayloadField }) {
  const { kind, isRequired, values, isWhole } = field;
  const own = { id, name: nameOfField(field), required: isRequired };
  if (kind === "string") return <input {...own} type="text" autocomplete="off" />;
  if (kind === "number") return <input {...own} type="number" step={isWhole ? "1" : "any"} />;
  return (
    <select {...own}>
      {isRequired ? null : <option value="">–</option>}
      {(kind === "boolean" ? ["true", "false"] : values).map((value) => (
        <option value={value}>{value}</option>
      ))}
    </select>
  );
}
