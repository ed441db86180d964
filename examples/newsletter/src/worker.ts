// The Worker: the app's routes first. Everything else is Sluice's: its API, its dashboard, its crons and its clock.
import { sluice } from "sluice/hyperdrive";
import { app } from "./app.ts";
import { jobs, schedules } from "./jobs.ts";

export { SluiceClock, SluiceProducer } from "sluice/clock";

const queue = sluice({ jobs, schedules });
app.notFound((c) => queue.fetch(c.req.raw, c.env, c.executionCtx));

export default { fetch: app.fetch, scheduled: queue.scheduled };
