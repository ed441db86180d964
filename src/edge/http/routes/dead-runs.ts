// Runs over dead letters: start, list, look at and stop them.
import * as z from "zod";
import type { DeadRunPage, DeadRunResponse } from "../../../contract/dead-letters.ts";
import type { DeadRun } from "../../../core/dead-letters.ts";
import { SluiceError } from "../../../core/errors.ts";
import * as sql from "../../../core/sql/index.ts";
import { decodeCursor, encodeCursor } from "../codec/cursor.ts";
import type { Handlers } from "../operation-routes.ts";
import { startRun } from "../start-run.ts";

/** A bigint. */
const runId = z.string().regex(/^[1-9]\d{0,17}$/);

export const startDeadRun: Handlers["startDeadRun"] = async (context, { body }) => {
  const { dry_run, count, per_minute: perMinute, payload_patch: patch, until: untilText, ...rest } = body;
  const until = untilText === undefined ? undefined : new Date(untilText);
  if (dry_run) {
    const { dead, at } = await context.env.ports.db.run(sql.countDead({ ...rest, until }));
    const matched = count === undefined ? dead : Math.min(dead, count);
    return context.json({ matched, until: (until ?? at).toISOString(), dry_run }, 200);
  }
  if (patch && !context.env.ports.registry.find(rest.type ?? ""))
    throw new SluiceError(
      "forbidden",
      `the type "${rest.type}" is not registered, so no payload of it can be checked`,
    );
  const run = await startRun(context, { ...rest, until, maxJobs: count, perMinute, patch });
  return context.json(toRunResponse(run), 201);
};

export const listDeadRuns: Handlers["listDeadRuns"] = async (context, { query: { cursor, limit } }) => {
  const before = cursor === undefined ? undefined : decodeCursor(cursor, runId);
  const runs = await context.env.ports.db.run(sql.listDeadRuns({ before, limit }));
  const last = runs.length === limit ? runs.at(-1) : undefined;
  const body: DeadRunPage = {
    runs: runs.map(toRunResponse),
    next_cursor: last ? encodeCursor(last.id) : null,
  };
  return context.json(body);
};

export const getDeadRun: Handlers["getDeadRun"] = async (context) => {
  const id = parseRunId(context.req.param("run"));
  const run = await context.env.ports.db.run(sql.findDeadRun(id));
  if (!run) throw noSuchRun(id);
  return context.json(toRunResponse(run));
};

export const stopDeadRun: Handlers["stopDeadRun"] = async (context) => {
  const id = parseRunId(context.req.param("run"));
  const stopped = await context.env.ports.db.run(sql.stopDeadRun(context.get("caller").actor, id));
  if (!stopped) throw noSuchRun(id);
  if (!stopped.applied)
    throw new SluiceError("conflict", `run ${id} is ${stopped.run.state}; only a running one can be stopped`);
  return context.json(toRunResponse(stopped.run));
};

function parseRunId(text = ""): string {
  if (!runId.safeParse(text).success) throw noSuchRun(text);
  return text;
}

function noSuchRun(id: string): SluiceError {
  return new SluiceError("not_found", `there is no run ${id}`);
}

function toRunResponse(run: DeadRun): DeadRunResponse {
  const { id, until, maxJobs, perMinute, patch, skips, startedAt, endedAt, ...rest } = run;
  return {
    ...rest,
    run_id: id,
    until: until.toISOString(),
    count: maxJobs,
    per_minute: perMinute,
    payload_patch: patch,
    skips: skips.map(({ jobId, reason }) => ({ job_id: jobId, reason })),
    started_at: startedAt.toISOString(),
    ended_at: endedAt?.toISOString() ?? null,
  };
}
