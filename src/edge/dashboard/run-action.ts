// An action is a request to the HTTP API in the name of the person who has signed in. So it has the same validation, roles
// and audit as any other request. Afterwards the browser goes back to the page (Post/Redirect/Get).
import type { Context } from "hono";
import type { Operation } from "../../contract/operation.ts";
import { operations } from "../../contract/operations.ts";
import { type Problem, problem } from "../../contract/problem.ts";
import { SluiceError } from "../../core/errors.ts";
import type { Action, Each } from "../../dashboard/actions.tsx";
import { errorContent, toSentence } from "../../dashboard/error-page.tsx";
import { FormError } from "../../dashboard/form-fields.ts";
import type { Refusal } from "../../dashboard/page.ts";
import type { AppEnv } from "../http/app-env.ts";
import { problemOf } from "../http/codec/problem.ts";
import type { Caller } from "../http/guards/caller.ts";
import { answerPage, leaveFlash } from "./answer.ts";
import { readForm, safePath } from "./form.ts";

interface Run {
  /** Of actions.ts. */
  id: string;
  action: Action;
  caller: Caller;
  /** Shows the page that the form is on. */
  showAgain(path: string, refusal: Refusal): Promise<Response> | Response;
  callApi(
    request: Request,
    env: AppEnv["Bindings"],
    context: Context["executionCtx"],
  ): Promise<Response> | Response;
}

export async function runAction(
  context: Context<AppEnv>,
  { id, action, caller, callApi, showAgain }: Run,
): Promise<Response> {
  const form = await readForm(context);
  const { origin } = new URL(context.req.url);
  const call = async (filled: URLSearchParams): Promise<Called> => {
    const request = toRequest(action, filled, origin);
    if (request instanceof FormError) return { isDone: false, answer: toProblem(request) };
    const response = await callApi(request, { ...context.env, caller }, context.executionCtx);
    return { isDone: response.ok, answer: await response.json() };
  };
  if (action.each) return runForEach(context, { each: action.each, caller, form, call });
  const { isDone, answer } = await call(form);
  if (!isDone) {
    const refusal = toRefusal(id, form, problem.parse(answer));
    const from = form.get("from");
    const isHelpful = from !== null && refusal.status !== 403 && refusal.status < 500;
    return isHelpful
      ? showAgain(safePath(context, from), refusal)
      : refuse(context, { caller, answer, form });
  }
  if (action.show) return answerPage(context, { caller, content: action.show(answer as never) });
  leaveFlash(context, { kind: "done", text: action.done(answer as never) });
  return goBack(context, form);
}

interface Called {
  isDone: boolean;
  answer: unknown;
}

/**
 * One request for each id. Each is done or refused for itself, because a job may have moved on since the page was made.
 */
async function runForEach(
  context: Context<AppEnv>,
  {
    each,
    caller,
    form,
    call,
  }: {
    each: Each;
    caller: Caller;
    form: URLSearchParams;
    call(form: URLSearchParams): Promise<Called>;
  },
): Promise<Response> {
  const ids = [...new Set(form.getAll("id"))];
  if (ids.length > each.most)
    throw new SluiceError(
      "request_invalid",
      `a form takes at most ${each.most} ${each.noun}s, not ${ids.length}`,
    );
  const filledFor = (id: string) => {
    const filled = new URLSearchParams(form);
    filled.set("id", id); // in the place of all of them
    return filled;
  };
  const called = await Promise.all(ids.map((id) => call(filledFor(id))));
  const refusals = called.filter(({ isDone }) => !isDone).map(({ answer }) => problem.parse(answer));
  const forbidden = refusals.find(({ status }) => status === 403);
  if (forbidden) return refuse(context, { caller, answer: forbidden, form });
  const done = called.length - refusals.length;
  const others = refusals.length === 0 ? "" : `; ${refusals.length} refused: ${refusals[0]?.detail}`;
  const text = ids.length === 0 ? `No ${each.noun} is selected.` : toSentence(each.done(done) + others);
  leaveFlash(context, { kind: done > 0 ? "done" : "failed", text });
  return goBack(context, form);
}

/** A form without fields was refused: what a person can put right is a message. Anything else is a page of its own. */
function refuse(
  context: Context<AppEnv>,
  { caller, answer, form }: { caller: Caller; answer: unknown; form: URLSearchParams },
): Response | Promise<Response> {
  const refused = problem.parse(answer);
  const { status } = refused;
  if (status === 403 || status >= 500)
    return answerPage(context, { caller, content: errorContent(refused, undefined), status });
  leaveFlash(context, { kind: "failed", text: textOf(refused) });
  return goBack(context, form);
}

function toRefusal(action: string, form: URLSearchParams, refused: Problem): Refusal {
  return { action, form, status: refused.status, text: textOf(refused), faults: refused.errors ?? [] };
}

function textOf({ detail, errors = [] }: Problem): string {
  const faults = errors.map(({ path, message }) => `${path}: ${message}`).join("; ");
  return toSentence(faults ? `${detail}: ${faults}` : detail);
}

function toProblem({ path, message }: FormError): Problem {
  const faults = [{ path, message }];
  const error = new SluiceError("request_invalid", "a field of the form cannot be read", { faults });
  return problemOf(error, { method: "POST", route: "" }).body;
}

function goBack(context: Context<AppEnv>, form: URLSearchParams): Response {
  return context.redirect(safePath(context, form.get("to")), 303);
}

function toRequest(action: Action, form: URLSearchParams, origin: string): Request | FormError {
  const operation: Operation = operations[action.operation];
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(fieldOf(form, name)),
  );
  const method = operation.method.toUpperCase();
  if (!action.body) return new Request(origin + path, { method });
  const headers = { "content-type": "application/json" };
  try {
    return new Request(origin + path, { method, headers, body: JSON.stringify(action.body(form)) });
  } catch (error) {
    if (error instanceof FormError) return error;
    throw error;
  }
}

function fieldOf(form: URLSearchParams, name: string): string {
  const value = form.get(name);
  if (!value) throw new SluiceError("request_invalid", `the form has no field "${name}"`);
  return value;
}
