// sluice({ jobs, queues, schedules }) makes the Worker: its fetch and scheduled handlers. It creates the ports for each invocation.
import { defaultFanOut } from "../core/policy/fan-out.ts";
import { canaryJob } from "../jobs/canary.ts";
import type { QueueDefinition } from "../jobs/define-queue.ts";
import type { ScheduleDefinition } from "../jobs/define-schedule.ts";
import { createRegistry, type JobList, listOf } from "../jobs/registry.ts";
import { withHeartbeat } from "../queue/heartbeat.ts";
import { reap } from "../queue/reap.ts";
import { runAndRecord, runDrainRound } from "../queue/rounds.ts";
import { watch } from "../queue/watch.ts";
import { createAlarmClock } from "./clock/alarm-clock.ts";
import { consoleLog } from "./console-log.ts";
import { callDrain } from "./drain-call.ts";
import { app } from "./http/app.ts";
import type { AppEnv } from "./http/app-env.ts";
import { problemResponse } from "./http/codec/problem.ts";
import { writeEnqueueErrors } from "./http/guards/enqueue-errors.ts";
import { isolateStateFor } from "./isolate-state.ts";
import { readMetrics } from "./metrics-text.ts";
import { createNeonDatabase } from "./neon/neon-database.ts";
import { startDrainOf } from "./nudge.ts";
import { settingsFor } from "./settings/env.ts";
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
  fetch(
    request: Request,
    env: object,
    context: { waitUntil(work: Promise<unknown>): void },
  ): Promise<Response>;
  scheduled(
    controller: { cron: string },
    env: object,
    context: { waitUntil(work: Promise<unknown>): void },
  ): Promise<void>;
}

export function sluice({ jobs, queues, schedules, crons }: SluiceOptions): SluiceWorker {
  const registry = createRegistry([...listOf(jobs), canaryJob], queues, schedules);
  const { drain: drainCron, reap: reapCron, watch: watchCron } = { ...defaultCrons, ...crons };
  const rounds = new Map<string, { kind: keyof Crons; run: Round }>([
    [drainCron, { kind: "drain", run: drainQueues }],
    [reapCron, { kind: "reap", run: reapQueues }],
    [watchCron, { kind: "watch", run: watchQueues }],
  ]);

  async function bind(env: object, { timeoutMs, waitUntil }: BindOptions): Promise<Invocation> {
    const settings = await settingsFor(env);
    const isolate = isolateStateFor(settings);
    const sender = createSender({ allowPrivate: settings.allowPrivateTargets });
    const basics = { clock: systemClock, log: consoleLog };
    const alarmClock = createAlarmClock({ settings, isolate, ports: basics, waitUntil });
    const ports = {
      ...basics,
      db: createNeonDatabase(settings, { timeoutMs, isolate }),
      random: Math.random,
      sender,
      registry,
      env,
      wakeIn: alarmClock.wakeIn,
    };
    return { settings, isolate, ports, sender, alarmClock };
  }

  return {
    async fetch(request, env, context) {
      try {
        const waitUntil = (work: Promise<unknown>) => context.waitUntil(work);
        const invocation = await bind(env, { timeoutMs: requestTimeoutMs, waitUntil });
        const nudge: AppEnv["Bindings"]["nudge"] = (name, types) =>
          startDrainOf({ ...invocation, name, types, waitUntil });
        const bindings = { ...invocation, nudge };
        return await app.fetch(request, bindings, context as never);
      } catch (error) {
        return problemResponse(error, { method: request.method, route: new URL(request.url).pathname });
      }
    },
    async scheduled(controller, env, context) {
      const round = rounds.get(controller.cron);
      if (!round)
        throw new Error(`no round has the cron expression "${controller.cron}": set it in sluice({ crons })`);
      const waitUntil = (work: Promise<unknown>) => context.waitUntil(work);
      const invocation = await bind(env, { timeoutMs: roundTimeoutMs, waitUntil });
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
    },
  };
}

type Invocation = Omit<AppEnv["Bindings"], "nudge">;

interface BindOptions {
  timeoutMs: number;
  waitUntil(work: Promise<unknown>): void;
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
