// sluice({ jobs }): a deployment, as the platform wants it. It binds the ports to what an invocation was given.
import type { ExecutionContext, ScheduledController } from "@cloudflare/workers-types";
import type { JobDefinition } from "../jobs/define.ts";
import { createRegistry } from "../jobs/registry.ts";
import { drain } from "../queue/drain.ts";
import type { Queue } from "../queue/ports.ts";
import { reap } from "../queue/reap.ts";
import { watch } from "../queue/watch.ts";
import { consoleLog } from "./console-log.ts";
import { type Settings, settingsOf } from "./env.ts";
import { app } from "./http/app.ts";
import { problemResponse } from "./http/problem.ts";
import { createNeonDatabase } from "./neon-database.ts";

export interface SluiceOptions {
  jobs: readonly JobDefinition[];
  crons?: Partial<Crons>;
}

/** The cron expression of each round, as `wrangler.toml` has them. */
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

export interface SluiceWorker {
  fetch(request: Request, env: object, context: ExecutionContext): Promise<Response>;
  scheduled(controller: ScheduledController, env: object, context: ExecutionContext): Promise<void>;
}

export function sluice({ jobs, crons }: SluiceOptions): SluiceWorker {
  const registry = createRegistry(jobs);
  const { drain: drainCron, reap: reapCron, watch: watchCron } = { ...defaultCrons, ...crons };
  const rounds = new Map<string, Round>([
    [drainCron, { name: "drain", run: drain }],
    [reapCron, { name: "reap", run: reap }],
    [watchCron, { name: "watch", run: watch }],
  ]);

  function bind(env: object, settings: Settings): Queue {
    return {
      db: createNeonDatabase(settings),
      clock: { nowMs: () => Date.now() },
      random: Math.random,
      log: consoleLog,
      registry,
      env,
    };
  }

  return {
    async fetch(request, env, context) {
      try {
        const settings = settingsOf(env);
        const bindings = { settings, queue: bind(env, settings), registry };
        return await app.fetch(request, bindings, context as never);
      } catch (error) {
        return problemResponse(error);
      }
    },
    async scheduled(controller, env) {
      const round = rounds.get(controller.cron);
      if (!round) throw new Error(`no round is set for the cron "${controller.cron}": see sluice({ crons })`);
      const report = await round.run(bind(env, settingsOf(env)));
      consoleLog.info(round.name, { ...report });
    },
  };
}

interface Round {
  name: string;
  run(queue: Queue): Promise<object | undefined>;
}
