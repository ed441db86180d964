// POST /v1/nudge: jobs that were enqueued by SQL start as soon as those that were enqueued over HTTP.
import type { NudgeResponse } from "../../../contract/nudge.ts";
import { startDrainsOf } from "../accept-jobs.ts";
import type { Handlers } from "../operation-routes.ts";

export const nudge: Handlers["nudge"] = (context, { body: { queue } }) => {
  const { registry } = context.env.ports;
  const queues = queue === undefined ? [...new Set(registry.all().map((type) => type.queue))] : [queue];
  startDrainsOf(context, queues);
  return context.json({ queues } satisfies NudgeResponse, 202);
};
