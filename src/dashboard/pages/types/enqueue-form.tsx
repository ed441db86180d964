// A form that enqueues a job, made from the schema of the payload.
import type { JobDefinition } from "../../../jobs/define.ts";
import { nameOfField } from "../../form-fields.ts";
import type { PageRequest, Refusal } from "../../page.ts";
import { ActionForm, Choice, Input, refusalOf, TextArea } from "../../parts/action-form.tsx";
import { Card } from "../../parts/card.tsx";
import { type PayloadField, payloadForm } from "./payload-fields.ts";

export function EnqueueForm({ request, definition }: { request: PageRequest; definition: JobDefinition }) {
  const { fields, example } = payloadForm(definition.payload);
  const refusal = refusalOf(request, "enqueueJob");
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
            fields.map((field) => <PayloadInput field={field} refusal={refusal} />)
          ) : (
            <TextArea
              refusal={refusal}
              name="payload"
              label="Payload, JSON"
              value={JSON.stringify(example, null, 2)}
              control={{ rows: 8, required: true }}
            />
          )}
          {fields?.length === 0 ? <p class="muted">Its payload has no fields.</p> : null}
          <Input
            refusal={refusal}
            name="delay_seconds"
            label="Delay, seconds"
            hint="Empty: it is due at once."
            control={{ type: "number", min: 0 }}
          />
        </ActionForm>
      </div>
    </Card>
  );
}

function PayloadInput({ field, refusal }: { field: PayloadField; refusal: Refusal | undefined }) {
  const { name, kind, isRequired, isWhole, description, values } = field;
  const kindText = isWhole ? "whole number" : kind === "string" ? "text" : kind;
  const own = {
    ...{ refusal, id: `field-${name}`, name: nameOfField(field), path: `payload.${name}`, hint: description },
    label: `${name}, ${kind === "enum" ? "one of" : kindText}${isRequired ? "" : ", optional"}`,
  };
  if (kind === "string")
    return <Input {...own} control={{ type: "text", autocomplete: "off", required: isRequired }} />;
  if (kind === "number")
    return <Input {...own} control={{ type: "number", step: isWhole ? "1" : "any", required: isRequired }} />;
  const choices = kind === "boolean" ? ["true", "false"] : values;
  return (
    <Choice
      {...own}
      isRequired={isRequired}
      options={[
        ...(isRequired ? [] : [["", "–"] as const]),
        ...choices.map((value) => [value, value] as const),
      ]}
    />
  );
}
