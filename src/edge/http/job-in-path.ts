// Finds or changes the job whose id is in the path. A change is one statement, which also answers with the job.
import type { Context } from "hono";
import * as z from "zod";
import { SluiceError } from "../../core/errors.ts";
import type { ChangedJob, FoundJob } from "../../core/job-row.ts";
import { findJob } from "../../core/sql/index.ts";
import type { Statement } from "../../core/sql/statement.ts";
import type { AppEnv } from "./app-env.ts";
import { mayUse } from "./guards/auth.ts";

/** A job of a type that the caller's key may not use counts as not found. */
export async function findJobInPath(context: Context<AppEnv>): Promise<FoundJob> {
  const id = jobIdInPath(context);
  const { db, registry } = context.env.ports;
  const job = await db.run(findJob(id, { types: registry.all() }));
  if (!job || !mayUse(context, job.type)) throw noSuchJob(id);
  return job;
}

export async function changeJobInPath(
  context: Context<AppEnv>,
  toStatement: (id: string) => Statement<ChangedJob | null>,
): Promise<ChangedJob> {
  const id = jobIdInPath(context);
  const changed = await context.env.ports.db.run(toStatement(id));
  if (!changed) throw noSuchJob(id);
  return changed;
}

export function jobIdInPath(context: Context<AppEnv>): string {
  const text = context.req.param("id") ?? "";
  const id = z.uuid().safeParse(text);
  if (!id.success) throw noSuchJob(text);
  return id.data;
}

function noSuchJob(id: string): SluiceError {
  return new SluiceError("not_found", `there is no job ${id}`);
}
