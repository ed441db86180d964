// Calls an operation of the contract by its id. Method and path come from the contract, and so do the types of what goes in
// and out. It works over any `fetch`: that of Node, or the API in this process (over-sql.ts).
import type * as z from "zod";
import type { Operation } from "../contract/operation.ts";
import { type OperationId, operations } from "../contract/operations.ts";
import type { Problem } from "../contract/problem.ts";
import { CommandError, exitCodes } from "./exit.ts";

type Answers<Id extends OperationId> = (typeof operations)[Id]["answers"];
type AnyOf<Schemas> = {
  [Status in keyof Schemas]: Schemas[Status] extends z.ZodType ? z.output<Schemas[Status]> : never;
}[keyof Schemas];
export type Answer<Id extends OperationId> = AnyOf<Answers<Id>>;

export interface Call {
  /** The parameters of the path. */
  path?: Readonly<Record<string, unknown>>;
  query?: Readonly<Record<string, unknown>>;
  body?: object;
}

export interface Api {
  call<Id extends OperationId>(id: Id, call?: Call): Promise<Answer<Id>>;
  /** How the API is reached, for people: "http://…" or "the database … at …". */
  readonly words: string;
  readonly isOverSql: boolean;
  /** Waits for what goes on after the answers. */
  close(): Promise<void>;
}

export interface ApiOptions extends Pick<Api, "words" | "isOverSql" | "close"> {
  fetch: (request: Request) => Promise<Response>;
  baseUrl: string;
  key: string;
}

const answerWithinMs = 30_000;
const keptTextLength = 200;

export function createApi({ fetch, baseUrl, key, ...rest }: ApiOptions): Api {
  return {
    ...rest,
    async call(id, call = {}) {
      const operation: Operation = operations[id];
      const response = await send(() => fetch(toRequest(operation, call, { baseUrl, key })), rest.words);
      const text = await send(() => response.text(), rest.words);
      if (response.status in operation.answers) return parse(text, response, rest.words) as never;
      throw refusal(parseProblem(text), response, rest.words);
    },
  };
}

function toRequest(
  operation: Operation,
  { path = {}, query = {}, body }: Call,
  { baseUrl, key }: Pick<ApiOptions, "baseUrl" | "key">,
): Request {
  const filled = operation.path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(path[name] ?? "")),
  );
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return new Request(`${baseUrl.replace(/\/+$/, "")}${filled}${search.size > 0 ? `?${search}` : ""}`, {
    method: operation.method.toUpperCase(),
    headers: {
      ...(operation.roles && { authorization: `Bearer ${key}` }),
      ...(body && { "content-type": "application/json" }),
    },
    ...(body && { body: JSON.stringify(body) }),
    redirect: "manual",
    signal: AbortSignal.timeout(answerWithinMs),
  });
}

async function send<T>(work: () => Promise<T>, words: string): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(`${words} is out of reach: ${reasonOf(error)}`, exitCodes.outOfReach, {
      cause: error,
    });
  }
}

/** What `fetch` throws says "fetch failed". Its causes say why. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return `no answer within ${answerWithinMs / 1000} s`;
  const { code } = error as { code?: string };
  if (error.cause instanceof Error) return reasonOf(error.cause);
  return error.message || code || error.name;
}

function parse(text: string, response: Response, words: string): unknown {
  if (!response.headers.get("content-type")?.includes("json")) throw notSluice(response, words);
  try {
    return JSON.parse(text);
  } catch {
    throw new CommandError(
      `the answer of ${words} was cut off: ${text.length} characters arrived`,
      exitCodes.outOfReach,
    );
  }
}

function parseProblem(text: string): Partial<Problem> | undefined {
  try {
    const problem = JSON.parse(text) as Partial<Problem>;
    return typeof problem?.title === "string" ? problem : undefined;
  } catch {
    return undefined;
  }
}

/** A 400 is about a flag or an argument. With a 502, 503 or 504 the database or the Worker cannot work now. */
function refusal(problem: Partial<Problem> | undefined, response: Response, words: string): CommandError {
  const { status } = response;
  const isAway = [502, 503, 504].includes(status);
  if (!problem && !isAway) return notSluice(response, words);
  const detail = problem ? `${problem.title}: ${problem.detail}` : `HTTP ${status}`;
  const exitCode = isAway ? exitCodes.outOfReach : status === 400 ? exitCodes.usage : exitCodes.failed;
  const hint = status === 401 ? ` (${words})` : "";
  return new CommandError(`${detail}${hint}`, exitCode);
}

function notSluice({ status, headers }: Response, words: string): CommandError {
  const to = headers.get("location");
  const what = to ? `HTTP ${status} to ${to.slice(0, keptTextLength)}` : `HTTP ${status}`;
  return new CommandError(
    `${words} does not answer as Sluice does (${what}): check the address`,
    exitCodes.outOfReach,
  );
}
