// Commands of operators: cancel, replay, discard, pause, resume.
import { deepStrictEqual } from "node:assert/strict";
import fc from "fast-check";
import { cancel, discard, pause, replay, resume } from "../../../src/core/sql/index.ts";
import type { ModelJob, QueueModel } from "../queue-model.ts";
import { anyPick, command, type IsPossible, queue, types } from "./command.ts";

const hasJobs: IsPossible = (model) => model.jobs.size > 0;
const pickJob = (model: QueueModel, pick: number) =>
  [...model.jobs.values()][pick % model.jobs.size] as ModelJob;

export const cancels = anyPick.map((pick) =>
  command(
    `cancel (${pick})`,
    async (model, { db }) => {
      const job = pickJob(model, pick);
      const isPending = job.status === "pending";
      deepStrictEqual((await db.run(cancel(job.id)))?.applied, isPending);
      if (isPending) Object.assign(job, { status: "cancelled", hasTurn: false });
    },
    hasJobs,
  ),
);

/** Half of the picks are dead jobs, if there are any. */
export const revisions = fc
  .tuple(anyPick, fc.boolean(), fc.constantFrom("replay", "discard"))
  .map(([pick, isDead, verb]) =>
    command(
      `${verb} (${pick}, ${isDead ? "dead" : "any"})`,
      async (model, { db }) => {
        const dead = isDead ? model.all((job) => job.status === "dead") : [];
        const job = dead[pick % dead.length] ?? pickJob(model, pick);
        const { id } = job;
        const wasDead = job.status === "dead";
        const statement = verb === "replay" ? replay("ann", { id }) : discard("ann", { id });
        deepStrictEqual((await db.run(statement))?.applied, wasDead);
        if (!wasDead) return;
        if (verb === "replay") model.replay(job);
        else Object.assign(job, { status: "discarded", hasTurn: false });
      },
      hasJobs,
    ),
  );

export const pauses = fc
  .tuple(
    fc.constantFrom(...types.map((type) => ({ type })), { queue }),
    fc.constantFrom("pause", "resume", "resume"),
  )
  .map(([target, verb]) =>
    command(`${verb} ${JSON.stringify(target)}`, async (model, { db }) => {
      const name = "queue" in target ? `queue ${target.queue}` : `type ${target.type}`;
      const before = model.paused.size;
      if (verb === "pause") model.paused.add(name);
      else model.paused.delete(name);
      const changed = model.paused.size !== before;
      deepStrictEqual(await db.run(verb === "pause" ? pause("ann", target) : resume("ann", target)), changed);
    }),
  );
