// An action is a request to the HTTP API in the name of the person who has signed in. So it has the same validation, roles
// and audit as any other request. Afterwards the browser goes back to the page (Post/Redirect/Get).
import type { Context } from "hono";
import type { Operation } from "../../contract/operation.ts";
import { operations } from "../../contract/operations.ts";
import { problem } from "../../contract/problem.ts";
import { SluiceError } from "../../core/errors.ts";
import type { Action } from "../../dashboard/actions.tsx";
import { errorContent, toSentence } from "../../dashboard/error-page.tsx";
import { FormError } from "../../dashboard/form-fields.ts";
import type { AppEnv } from "../http/app-env.ts";
import type { Caller } from "../http/guards/caller.ts";
import { answerPage, leaveFlash } from "./answer.ts";
import { readForm, safePath } from "./form.ts";

interface Run {
  action: Action;
  caller: Caller;
  callApi(
    request: Request,
    env: AppEnv["Bindings"],
    context: Context["executionCtx"],
  ): Promise<Response> | Response;
}

export async function runAction(
  context: Context<AppEnv>,
  { action, caller, callApi }: Run,
): Promise<Response> {
  const form = await readForm(context);
  const request = toRequest(action, form, new URL(context.req.url).origin);
  const response = await callApi(request, { ...context.env, caller }, context.executionCtx);
  const answer: unknown = await response.json();
  if (!response.ok) return refuse(context, { caller, answer, form });
  if (action.show) return answerPage(context, { caller, content: action.show(answer as never) });
  leaveFlash(context, { kind: "done", text: action.done(answer as never) });
  return goBack(context, form);
}

/** What a person can put right is a message on the page with the form. Anything else is a page of its own. */
function refuse(
  context: Context<AppEnv>,
  { caller, answer, form }: { caller: Caller; answer: unknown; form: URLSearchParams },
): Response | Promise<Response> {
  const refusal = problem.parse(answer);
  const { status, detail, errors = [] } = refusal;
  if (status === 403 || status >= 500)
    return answerPage(context, { caller, content: errorContent(refusal, undefined), status });
  const faults = errors.map(({ path, message }) => `${path}: ${message}`).join("; ");
  leaveFlash(context, { kind: "failed", text: toSentence(faults ? `${detail}: ${faults}` : detail) });
  return goBack(context, form);
}

function goBack(context: Context<AppEnv>, form: URLSearchParams): Response {
  return context.redirect(safePath(context, form.get("to")), 303);
}

function toRequest(action: Action, form: URLSearchParams, origin: string): Request {
  const operation: Operation = operations[action.operation];
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(fieldOf(form, name)),
  );
  const method = operation.method.toUpperCase();
  if (!action.body) return new Request(origin + path, { method });
  const headers = { "content-type": "application/json" };
  return new Request(origin + path, { method, headers, body: JSON.stringify(bodyOf(action, form)) });
}

function fieldOf(form: URLSearchParams, name: string): string {
  const value = form.get(name);
  if (!value) throw new SluiceError("request_invalid", `the form has no field "${name}"`);
  return value;
}

function bodyOf(action: Action, form: URLSearchParams): unknown {
  try {
    return action.body?.(form);
  } catch (error) {
    if (error instanceof FormError) throw new SluiceError("request_invalid", error.message);
    throw error;
  }
}
