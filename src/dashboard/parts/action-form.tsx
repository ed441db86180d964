// A form that calls an action of actions.ts. Without a script it is a plain form; afterwards the server shows a message.
import type { Child } from "hono/jsx";
import type { ActionId } from "../actions.tsx";
import type { PageRequest } from "../page.ts";

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
      <input type="hidden" name="to" value={request.url.pathname + request.url.search} />
      {Object.entries(fields).map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      {children}
      <div>
        <button type="submit" class={`btn${kind ? ` is-${kind}` : ""}`} data-confirm={confirm}>
          {label}
        </button>
      </div>
    </form>
  );
}

interface FieldProps {
  id: string;
  label: string;
  hint?: Child;
  children: Child;
}

/** A label, its control and a hint. The control has the same id. */
export function Field({ id, label, hint, children }: FieldProps) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children}
      {hint ? <p class="small muted">{hint}</p> : null}
    </div>
  );
}
