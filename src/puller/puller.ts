// sluice/puller: a worker for Node, Deno and Bun. It claims jobs over HTTP, runs their handlers, extends their leases and
// settles them, until it is told to stop. It has no dependencies.
import { SluiceRequestError } from "../client/request-error.ts";
import { FatalError, LeaseLostError, RetryableError } from "../core/errors.ts";
import type { TypedJob } from "../core/typed-job.ts";
import { runClaimLoop } from "./claim-loop.ts";
import { createHeartbeat } from "./heartbeat.ts";
import { createKeyTurns } from "./key-turns.ts";
import { keepLeases } from "./leases.ts";
import { next } from "./next.ts";
import {
  type Handler,
  type JobName,
  type PulledJob,
  type PullerOptions,
  type Settings,
  withDefaults,
} from "./options.ts";
import { createRequests } from "./requests.ts";
import { StoppedError } from "./run-handler.ts";
import { createRunningJobs } from "./running-jobs.ts";
import { createSettler } from "./settler.ts";
import { onStopSignal } from "./signals.ts";
import { createSlots } from "./slots.ts";
import { createStop, type Stop } from "./stop.ts";

export type { Handler, JobName, PulledJob, PullerOptions, TypedJob };
export { FatalError, LeaseLostError, next, RetryableError, SluiceRequestError, StoppedError };

export interface Puller {
  readonly workerId: string;
  /** Works until `stop()`, SIGTERM or SIGINT. Rejects if the server refuses the key or the options. */
  run(): Promise<void>;
  /** Claims no more, and lets running handlers finish within `stopSeconds`. Resolves when everything is settled. */
  stop(): Promise<void>;
}

export function createPuller<Jobs extends Record<string, TypedJob> = Record<string, TypedJob>>(
  options: PullerOptions<Jobs>,
): Puller {
  const settings = withDefaults(options);
  const stop = createStop(settings);
  let working: Promise<void> | undefined;
  return {
    workerId: settings.workerId,
    run() {
      if (working) throw new Error("run() was called before: create another puller");
      working = work(settings, stop);
      return working;
    },
    async stop() {
      stop.begin();
      await working?.catch(() => {}); // run() rejects with it
    },
  };
}

async function work(settings: Settings, stop: Stop): Promise<void> {
  const { queues, concurrency, workerId, log } = settings;
  const { stopping, ending, givingUp } = stop;
  const ended = new AbortController();
  const requests = createRequests(settings);
  const slots = createSlots(concurrency, stopping);
  const turns = createKeyTurns(() => [...running.held().map(({ job }) => job), ...settler.jobs()]);
  const settler = createSettler({ settings, requests, givingUp, onSettled: turns.markSettled });
  const running = createRunningJobs({ settings, requests, slots, settler, stopping, ending });
  const heartbeat = createHeartbeat({ settings, requests, ended: ended.signal });
  const errors: unknown[] = [];
  const fail = (error: unknown) => {
    errors.push(error);
    stop.begin();
  };
  const removeListeners = settings.handleSignals ? onStopSignal(stop.begin) : () => {};
  stopping.addEventListener("abort", () => log("stopping", { worker_id: workerId }));

  log("started", { worker_id: workerId, queues });
  await heartbeat.start().catch(fail);
  const kept = [heartbeat.keepOn(), keepLeases({ settings, requests, running, ended: ended.signal })];
  const keeping = Promise.all(kept.map((task) => task.catch(fail)));
  const loop = { settings, requests, slots, turns, start: running.start, stopping, givingUp };
  await Promise.all(queues.map((queue) => runClaimLoop(queue, loop).catch(fail)));
  await running.allEnded();
  await settler.allSettled();
  ended.abort();
  await keeping;
  await heartbeat.leave(givingUp);
  stop.finish();
  removeListeners();
  log("stopped", { worker_id: workerId });
  if (errors.length > 0) throw errors[0];
}
