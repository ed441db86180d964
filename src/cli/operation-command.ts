// Commands that are one operation: what the user gave goes in, and its answer is shown. A list can follow its pages.
import type { Operation } from "../contract/operation.ts";
import { type OperationId, operations } from "../contract/operations.ts";
import type { Answer, Call } from "./api.ts";
import type { Command, CommandContext } from "./command.ts";
import type { Column, Output } from "./output/output.ts";

type Options = Omit<Command, "run" | "operation">;

export function operationCommand<Id extends OperationId>(
  operation: Id,
  { show, ...options }: Options & { show(answer: Answer<Id>, out: Output, context: CommandContext): void },
): Command {
  return {
    ...options,
    operation,
    async run(context) {
      const answer = await context.api.call(operation, toCall(operation, context));
      if (context.out.isJson) context.out.json(answer);
      else show(answer, context.out, context);
    },
  };
}

export function toCall(
  operation: OperationId,
  { values, fields }: Pick<CommandContext, "values" | "fields">,
): Call {
  const { query, body }: Operation = operations[operation];
  const isEmpty = Object.keys(fields).length === 0;
  return {
    path: values,
    ...(query && { query: fields }),
    ...(body && !(body.isOptional && isEmpty) && { body: fields }),
  };
}

interface ListOptions<Id extends OperationId, Row> extends Options {
  rows(answer: Answer<Id>): readonly Row[];
  columns: readonly Column<Row>[];
  empty: string;
}

/** An operation that answers with a list. One with pages has the flag --all. */
export function listCommand<Id extends OperationId, Row>(
  operation: Id,
  { rows, columns, empty, ...options }: ListOptions<Id, Row>,
): Command {
  const { query }: Operation = operations[operation];
  const hasPages = query !== undefined && "cursor" in query.shape;
  const all = {
    name: "all",
    kind: "boolean",
    help: "all pages; with --json one line for each entry",
  } as const;
  return {
    ...options,
    operation,
    flags: [...(options.flags ?? []), ...(hasPages ? [all] : [])],
    async run(context) {
      const { api, out, values } = context;
      if (values.all) return showAll(context);
      const answer = await api.call(operation, toCall(operation, context));
      if (out.isJson) return out.json(answer);
      const { next_cursor: next, searched_back_to: searchedTo } = answer as Page;
      const found = rows(answer);
      if (found.length > 0 || !searchedTo) out.table(found, columns, empty);
      // Not only on a terminal: a script must not take an unfinished search for an empty one.
      if (next && searchedTo)
        out.note(`searched back to ${searchedTo}: --cursor ${next} goes on, --all searches all`);
      else if (next && out.isTerminal)
        out.note(`there are more: --cursor ${next} shows the next page, --all shows all`);
    },
  };

  async function showAll(context: CommandContext): Promise<void> {
    const { api, out, fields } = context;
    let cursor: string | null | undefined;
    for (let page = 0; cursor !== null; page++) {
      const asked = { ...context, fields: { limit: maxPage, ...fields, ...(cursor && { cursor }) } };
      const answer = await api.call(operation, toCall(operation, asked));
      const found = rows(answer);
      if (out.isJson) for (const row of found) out.jsonLine(row);
      else if (found.length > 0 || page === 0) out.table(found, columns, empty);
      await out.flushed();
      cursor = (answer as Page).next_cursor ?? null;
    }
  }
}

const maxPage = 100;

interface Page {
  next_cursor?: string | null;
  /** The search stopped there, before the page was full. */
  searched_back_to?: string;
}

/** For commands that change something: a sentence on a terminal and in a pipe, the answer with --json. */
export function actionCommand<Id extends OperationId>(
  operation: Id,
  { say, ...options }: Options & { say(answer: Answer<Id>, context: CommandContext): string },
): Command {
  return operationCommand(operation, {
    ...options,
    show: (answer, out, context) => out.line(say(answer, context)),
  });
}

/** Jobs that start without a nudge wait for the cron. */
export function startWords({ api }: Pick<CommandContext, "api">): string {
  return api.isOverSql ? "; it starts with the next cron" : "";
}
