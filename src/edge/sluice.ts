// sluice({ jobs, queues, schedules }) makes the Worker: its fetch and scheduled handlers. It creates the ports for each
// invocation, and closes its database when the invocation has ended.
import { SluiceError } from "../core/errors.ts";
import { defaultFanOut } from "../core/policy/fan-out.ts";
import { canaryJob } from "../jobs/canary.ts";
import type { QueueDefinition } from "../jobs/define-queue.ts";
import type { ScheduleDefinition } from "../jobs/define-schedule.ts";
import { createRegistry, type JobList, listOf } from "../jobs/registry.ts";
import { withHeartbeat } from "../queue/heartbeat.ts";
import { createConnections } from "../queue/outgoing/connections.ts";
import { reap } from "../queue/reap.ts";
import { runAndRecord, runDrainRound } from "../queue/rounds.ts";
import { watch } from "../queue/watch.ts";
import { createAlarmClock } from "./clock/alarm-clock.ts";
import { createConsoleLog } from "./console-log.ts";
import { createDatabase } from "./database/create-database.ts";
import type { DatabaseKind, Transport } from "./database/transport.ts";
import { callDrain } from "./drain-call.ts";
import { app } from "./http/app.ts";
import type { AppEnv } from "./http/app-env.ts";
import { problemResponse } from "./http/codec/problem.ts";
import { writeEnqueueErrors } from "./http/guards/enqueue-errors.ts";
import { type ExecutionContext, trackWork } from "./invocation-work.ts";
import { isolateStateFor } from "./isolate-state.ts";
import { readMetrics } from "./metrics-text.ts";
import { startDrainOf } from "./nudge.ts";
import { type Settings, settingsFor } from "./settings/env.ts";
import { systemClock } from "./system-clock.ts";
import { createSender } from "./webhook-sender.ts";

export interface SluiceOptions {
  /** A list, or an object with the types by name. */
  jobs: JobList;
  /** Only queues whose keys need other rules than the defaults. */
  queues?: readonly QueueDefinition[];
  /** The schedules in code. What is in the list is made, what has gone from it is removed. Left out: they are left alone. */
  schedules?: readonly ScheduleDefinition[];
  crons?: Partial<Crons>;
  /** `hyperdrive` of "sluice/hyperdrive": used if the Worker has its binding. Otherwise Neon's HTTP is used. */
  database?: DatabaseKind;
}

/** The cron expression of each round. `wrangler.toml` must have the same. */
export interface Crons {
  drain: string;
  reap: string;
  watch: string;
}

export const defaultCrons: Crons = {
  drain: "* * * * *",
  reap: "*/2 * * * *",
  watch: "1-59/2 * * * *",
};

/** The limits of one statement. A caller learns within 5 s that the database is unreachable; a round can wait longer. */
const requestTimeoutMs = 4_000;
const roundTimeoutMs = 30_000;

/** Contains only the parts of the platform's types that Sluice uses, so that it fits all their versions. */
export interface SluiceWorker {
  fetch(request: Request, env: object, context: ExecutionContext): Promise<Response>;
  scheduled(controller: { cron: string }, env: object, context: ExecutionContext): Promise<void>;
}

/** The first kind of database that the Worker has is used. */
export function createSluice(
  databases: readonly DatabaseKind[],
  { jobs, queues, schedules, crons }: Omit<SluiceOptions, "database">,
): SluiceWorker {
  const registry = createRegistry([...listOf(jobs), canaryJob], queues, schedules);
  const { drain: drainCron, reap: reapCron, watch: watchCron } = { ...defaultCrons, ...crons };
  const rounds = new Map<string, { kind: keyof Crons; run: Round }>([
    [drainCron, { kind: "drain", run: drainQueues }],
    [reapCron, { kind: "reap", run: reapQueues }],
    [watchCron, { kind: "watch", run: watchQueues }],
  ]);

  async function bind(env: object, { timeoutMs, waitUntil }: BindOptions): Promise<Bound> {
    const settings = await settingsFor(env);
    const isolate = isolateStateFor(settings);
    const sender = createSender({ allowPrivate: settings.allowPrivateTargets });
    const log = createConsoleLog({ isDetailed: settings.logJobs });
    const basics = { clock: systemClock, log };
    const alarmClock = createAlarmClock({ settings, isolate, ports: basics, waitUntil });
    const transport = openTransport(databases, settings);
    const ports = {
      ...basics,
      db: createDatabase(transport, { schema: settings.schema, timeoutMs, isolate }),
      random: Math.random,
      sender,
      connections: createConnections(),
      registry,
      env,
      wakeIn: alarmClock.wakeIn,
      hasClock: settings.clock !== undefined,
    };
    return { invocation: { settings, isolate, ports, sender, alarmClock }, transport };
  }

  return {
    async fetch(request, env, context) {
      try {
        const work = trackWork(context);
        const { waitUntil } = work;
        const { invocation, transport } = await bind(env, { timeoutMs: requestTimeoutMs, waitUntil });
        const nudge: AppEnv["Bindings"]["nudge"] = (name, types) =>
          startDrainOf({ ...invocation, name, types, waitUntil });
        const response = await app.fetch(request, { ...invocation, nudge }, work as never);
        context.waitUntil(work.ended().then(transport.close));
        return response;
      } catch (error) {
        return problemResponse(error, { method: request.method, route: new URL(request.url).pathname });
      }
    },
    async scheduled(controller, env, context) {
      const round = rounds.get(controller.cron);
      if (!round)
        throw new Error(`no round has the cron expression "${controller.cron}": set it in sluice({ crons })`);
      const work = trackWork(context);
      const { waitUntil } = work;
      const { invocation, transport } = await bind(env, { timeoutMs: roundTimeoutMs, waitUntil });
      try {
        await runRound(round, invocation, waitUntil);
      } finally {
        context.waitUntil(work.ended().then(transport.close));
      }
    },
  };
}

async function runRound(
  round: { kind: keyof Crons; run: Round },
  invocation: Invocation,
  waitUntil: BindOptions["waitUntil"],
): Promise<void> {
  const { sender, ports, settings } = invocation;
  const url = settings.heartbeatUrls[round.kind];
  const { isAsleep, sleptMsAgo } = await invocation.alarmClock.tick();
  await withHeartbeat({ url, sender, log: ports.log, waitUntil }, async () =>
    isAsleep ? { asleep: true } : round.run({ ...invocation, sleptMsAgo }),
  );
  if (isAsleep) return;
  await writeEnqueueErrors(invocation);
  // The clock sees what the round has made, such as a canary or a job of a dead process, before the database may sleep.
  if (settings.maxSleepMinutes > 0 && round.kind !== "drain") ports.wakeIn(0);
}

function openTransport(databases: readonly DatabaseKind[], settings: Settings): Transport {
  const database = databases.find(({ isIn }) => isIn(settings));
  if (database) return database.open(settings);
  const missing = settings.hyperdriveUrl === undefined ? "HYPERDRIVE is not set" : "DATABASE_URL is not set";
  const hint =
    settings.hyperdriveUrl === undefined ? "" : ', and `sluice` is not that of "sluice/hyperdrive"';
  throw new SluiceError("settings_invalid", `invalid settings: ${missing}${hint}`);
}

interface Bound {
  invocation: Invocation;
  transport: Transport;
}

type Invocation = Omit<AppEnv["Bindings"], "nudge" | "caller">;

interface BindOptions extends ExecutionContext {
  timeoutMs: number;
}

type Round = (invocation: Invocation & { sleptMsAgo: number | null }) => Promise<object>;

/** With the Worker's binding to itself, each drain is an invocation with a budget of its own. */
const drainQueues: Round = ({ settings: { plan, maxDrains, self, adminKeys }, ports, alarmClock }) =>
  runDrainRound(ports, {
    plan,
    fanOut: { ...defaultFanOut, maxDrains },
    drainElsewhere: self && ((queue) => callDrain({ self, adminKeys, nowMs: ports.clock.nowMs() }, queue)),
    onLook: alarmClock.noteLook,
  });

/** Jobs that it made pending again may be due later. */
const reapQueues: Round = ({ ports }) =>
  runAndRecord(ports, { kind: "reap", asksDue: () => true }, () => reap(ports));

const watchQueues: Round = async ({ settings, ports, sender, sleptMsAgo, alarmClock }) => {
  const { alarmRules: rules, alarmTargets: targets, deployment, plan, maxSleepMinutes } = settings;
  const options = { rules, targets, sender, deployment, plan, sleptMsAgo };
  const report = await runAndRecord(ports, { kind: "watch" }, () => watch(ports, options));
  if (maxSleepMinutes > 0) await alarmClock.keepMetrics(await readMetrics(ports, settings));
  return report;
};
