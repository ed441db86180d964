// A form that calls an action of actions.ts. Without a script it is a plain form; afterwards the server shows a message. If a form
// with fields is refused, the page shows it again as it was filled in, with the reason beside the field.
import type { Child } from "hono/jsx";
import type { ActionId } from "../actions.tsx";
import type { PageRequest, Refusal } from "../page.ts";
import type { Column } from "./table.tsx";

interface ActionFormProps {
  request: PageRequest;
  action: ActionId;
  /** Hidden fields: the parameters of the operation's path, and what `body` of the action reads. */
  fields?: Readonly<Record<string, string>>;
  /** A verb, with its number: "Replay 87 jobs". */
  label: string;
  /** With a script, this question comes first. */
  confirm?: string;
  kind?: "main" | "danger" | "quiet";
  /** Fields that people fill in. */
  children?: Child;
}

/** Nothing for people who may not change anything. */
export function ActionForm({
  request,
  action,
  fields = {},
  label,
  confirm,
  kind,
  children,
}: ActionFormProps) {
  if (!request.viewer.mayChange) return null;
  return (
    <form class={children ? "stack" : "row"} method="post" action={`/actions/${action}`}>
      <Hidden fields={{ to: pathOf(request), ...(children ? { from: pathOf(request) } : {}), ...fields }} />
      {children}
      <div>
        <button type="submit" class={`btn${kind ? ` is-${kind}` : ""}`} data-confirm={confirm}>
          {label}
        </button>
      </div>
    </form>
  );
}

/** The last column of a table: what can be done with a row. People who may not change anything do not get it. */
export function actionsColumn<Row>(
  { viewer }: PageRequest,
  cell: Column<Row>["cell"],
  kind = "n",
): Column<Row>[] {
  return viewer.mayChange ? [{ title: "Actions", isHidden: true, class: kind, cell }] : [];
}

/** `to` is where to go afterwards. `from` is the page that shows the form again if it is refused. */
export function Hidden({ fields }: { fields: Readonly<Record<string, string | undefined>> }) {
  return (
    <>
      {Object.entries(fields).map(([name, value]) =>
        value === undefined ? null : <input type="hidden" name={name} value={value} />,
      )}
    </>
  );
}

export function pathOf({ url }: PageRequest): string {
  return url.pathname + url.search;
}

/** How the form was filled in when it was refused. Undefined if it was not. */
export function refusalOf({ refusal }: PageRequest, action: ActionId): Refusal | undefined {
  return refusal?.action === action ? refusal : undefined;
}

interface FieldProps {
  name: string;
  label: string;
  /** Unique on the page. By default its name. */
  id?: string;
  hint?: Child;
  /** What it contains at first. */
  value?: string | undefined;
  refusal?: Refusal | undefined;
  /** Where the API names the field in its errors. By default its name. */
  path?: string;
}

type Control = Record<string, string | number | boolean | undefined>;

export function Input({ control = {}, ...field }: FieldProps & { control?: Control }) {
  const { own, value } = stateOf(field);
  return (
    <Labelled {...field}>
      <input {...own} {...control} value={value} />
    </Labelled>
  );
}

export function TextArea({ control = {}, ...field }: FieldProps & { control?: Control }) {
  const { own, value } = stateOf(field);
  return (
    <Labelled {...field}>
      <textarea {...own} {...control} spellcheck={false}>
        {value}
      </textarea>
    </Labelled>
  );
}

interface ChoiceProps extends FieldProps {
  /** Values, and how they are shown. */
  options: readonly (readonly [value: string, text: string])[];
  isRequired?: boolean;
}

export function Choice({ options, isRequired, ...field }: ChoiceProps) {
  const { own, value } = stateOf(field);
  return (
    <Labelled {...field}>
      <select {...own} required={isRequired}>
        {options.map(([option, text]) => (
          <option value={option} selected={option === value}>
            {text}
          </option>
        ))}
      </select>
    </Labelled>
  );
}

/** The first field that was refused gets the focus. */
function stateOf({ name, id = name, value, hint, refusal, path = name }: FieldProps) {
  const faults = faultsAt(path, refusal);
  const describedBy = [hint ? `${id}-hint` : "", faults.length > 0 ? `${id}-fault` : ""].filter(Boolean);
  return {
    own: {
      ...{ id, name },
      "aria-describedby": describedBy.join(" ") || undefined,
      "aria-invalid": faults.length > 0 ? ("true" as const) : undefined,
      ...(faults.length > 0 && faults[0] === refusal?.faults[0] ? { autofocus: true } : {}),
    },
    value: refusal?.form.get(name) ?? value,
  };
}

/** Also those of what is inside of it, such as a field of the payload. */
function faultsAt(path: string, refusal: Refusal | undefined): Refusal["faults"] {
  return refusal?.faults.filter((fault) => fault.path === path || fault.path.startsWith(`${path}.`)) ?? [];
}

function Labelled({
  name,
  id = name,
  label,
  hint,
  refusal,
  path = name,
  children,
}: FieldProps & { children?: Child }) {
  const faults = faultsAt(path, refusal);
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children}
      {faults.length === 0 ? null : (
        <p class="small t-dead" id={`${id}-fault`}>
          {faults
            .map((fault) => [fault.path.slice(path.length + 1), fault.message].filter(Boolean).join(": "))
            .join("; ")}
        </p>
      )}
      {hint ? (
        <p class="small muted" id={`${id}-hint`}>
          {hint}
        </p>
      ) : null}
    </div>
  );
}
