// The list of rounds: what each did and why it ended.
import * as z from "zod";
import type { RoundPage } from "../../../contract/stats.ts";
import * as sql from "../../../core/sql/index.ts";
import { decodeCursor, encodeCursor } from "../codec/cursor.ts";
import type { Handlers } from "../operation-routes.ts";

/** A number of up to 18 digits always fits a bigint. */
const position = z.string().regex(/^\d{1,18}$/);

export const listRounds: Handlers["listRounds"] = async (context, { query: { kind, cursor, limit } }) => {
  const before = cursor === undefined ? undefined : decodeCursor(cursor, position);
  const rounds = await context.env.ports.db.run(sql.listRounds({ kind, before, limit }));
  const last = rounds.length === limit ? rounds.at(-1) : undefined;
  const body: RoundPage = {
    rounds: rounds.map(({ startedAt, endedAt, ...round }) => ({
      ...round,
      started_at: startedAt.toISOString(),
      ended_at: endedAt.toISOString(),
    })),
    next_cursor: last ? encodeCursor(last.id) : null,
  };
  return context.json(body);
};
