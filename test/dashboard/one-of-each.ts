// One of each thing that the dashboard shows, and a form for every action on them.
import * as z from "zod";
import { claimResponse } from "../../src/contract/work.ts";
import type { ActionId } from "../../src/dashboard/actions.tsx";
import { definePulledJob } from "../../src/index.ts";
import { adminCallsOf } from "../worker/admin-calls.ts";
import type { Deployment } from "../worker/deployment.ts";

/** Pulled, so that no drain changes anything meanwhile. */
export const note = definePulledJob("note", { payload: z.object({ text: z.string() }) });

export interface OneOfEach {
  pending: string;
  processing: string;
  dead: string;
  flow: string;
  key: string;
  /** Over dead letters. */
  run: string;
}

export async function makeOneOfEach(deployment: Deployment): Promise<OneOfEach> {
  const { addKey, ask, send } = adminCallsOf(deployment);
  const dead = await deployment.enqueue({ type: "note", payload: { text: "dead" } });
  await fail(deployment, dead);
  const processing = await deployment.enqueue({ type: "note", payload: { text: "processing" } });
  await ask("POST /v1/claims", claimResponse, { worker_id: "w", types: ["note"], limit: 1 });
  const pending = await deployment.enqueue({ type: "note", payload: { text: "pending" }, tags: ["a-tag"] });
  const jobs = [
    { ref: "a", type: "note", payload: { text: "first" } },
    { ref: "b", type: "note", payload: { text: "second" }, after: ["a"] },
  ];
  const { flow_id: flow } = z
    .object({ flow_id: z.string() })
    .parse(await (await send("POST /v1/flows", { body: { jobs } })).json());
  await send("PUT /v1/schedules/nightly", {
    body: { cron: "0 2 * * *", type: "note", payload: { text: "night" } },
  });
  const key = (await addKey("producer", { name: "to be revoked" })).id;
  const run = await startSlowRun(deployment);
  return { pending, processing, dead, flow, key, run };
}

/** Its next step is an hour away, so it is still running when it is stopped. */
async function startSlowRun({ query }: Deployment): Promise<string> {
  const [run] = await query<{ id: string }>(
    `select sluice.start_dead_run('somebody', 'replay', 'note', null, null, null, null, null, 1, null, 'paper is back')->>'id' as id`,
  );
  await query("update sluice.dead_run set next_at = now() + interval '1 hour'");
  return run?.id ?? "";
}

async function fail(deployment: Deployment, id: string): Promise<void> {
  const { ask, send } = adminCallsOf(deployment);
  const { jobs } = await ask("POST /v1/claims", claimResponse, { worker_id: "w", types: ["note"], limit: 1 });
  const lease = jobs[0]?.lease;
  await send(`POST /v1/jobs/${id}/fail`, {
    body: { lease, error: "the printer is out of paper", fatal: true },
  });
}

/** Each changes something if an admin sends it. A new action does not compile until its form is here. */
export const forms: Record<ActionId, (each: OneOfEach) => Record<string, string>> = {
  enqueueJob: () => ({ type: "note", "payload:string:text": "new" }),
  cancelJob: ({ pending }) => ({ id: pending }),
  cancelJobs: ({ pending }) => ({ id: pending }),
  replayJobs: ({ dead }) => ({ id: dead }),
  resolveJob: ({ pending }) => ({ id: pending, output: "1" }),
  replayDeadLetter: ({ dead }) => ({ id: dead }),
  discardDeadLetter: ({ dead }) => ({ id: dead, reason: "not needed" }),
  startDeadRun: () => ({ action: "replay", type: "note", count: "1", per_minute: "60" }),
  startDeadRuns: () => ({ action: "replay", id: "fatal.0000000000000000.note", per_minute: "60" }),
  stopDeadRun: ({ run }) => ({ run }),
  cancelFlow: ({ flow }) => ({ id: flow }),
  pauseJobType: () => ({ type: "note" }),
  resumeJobType: () => ({ type: "note" }),
  pauseQueue: () => ({ queue: "default" }),
  resumeQueue: () => ({ queue: "default" }),
  pauseSchedule: () => ({ name: "nightly" }),
  resumeSchedule: () => ({ name: "nightly" }),
  runSchedule: () => ({ name: "nightly" }),
  silenceAlarm: () => ({ alarm: "dead_letters", minutes: "60", reason: "known" }),
  unsilenceAlarm: () => ({ alarm: "dead_letters" }),
  sendTestNotice: () => ({}),
  addKey: () => ({ name: "a new key", role: "viewer" }),
  revokeKey: ({ key }) => ({ id: key }),
};
