// Connects the durable steps of one pulled job to the API.
import { snakeCased } from "../client/field-names.ts";
import { SluiceRequestError } from "../client/request-error.ts";
import { sleep } from "../client/send.ts";
import { CancelledError, FatalError, LeaseLostError, RetryableError } from "../core/errors.ts";
import type { Json, NewJob } from "../core/job.ts";
import type { StepHost } from "../queue/steps/step-calls.ts";
import type { ClaimedJob } from "./options.ts";
import type { Requests } from "./requests.ts";

/** The server's limit. */
const childrenPerRequest = 100;

export function createStepHost(
  job: ClaimedJob,
  requests: Requests,
  call: Pick<StepHost, "signal" | "timeoutSeconds" | "restart" | "end">,
): StepHost {
  const { signal, end } = call;
  /** What a request answers. If it fails, the attempt ends, and the step never settles. */
  async function ask<Answer>(what: string, request: Promise<Answer>): Promise<Answer> {
    const answer = await request.catch((error) => void end(reasonOf(what, error)));
    return answer === undefined || signal.aborted ? new Promise<never>(() => {}) : answer;
  }
  return {
    ...call,
    jobId: job.job_id,
    traceparent: job.traceparent,
    clock: { nowMs: Date.now, sleep: (ms) => sleep(ms, signal), setTimer },
    hasRoom: () => true,
    async read() {
      const { steps, now } = await requests.storeSteps(job, [], signal);
      return { steps, nowMs: Date.parse(now) };
    },
    async write(step) {
      const what = `the step "${step.name}" could not be stored`;
      const answer = await ask(what, requests.storeSteps(job, [step], signal));
      if (answer.cancel_requested) {
        end(new CancelledError("the job was cancelled"));
        return new Promise(() => {});
      }
      return Object.hasOwn(answer.steps, step.name)
        ? (answer.steps[step.name] as Json)
        : "value" in step
          ? step.value
          : null;
    },
    async findSignal(name, key) {
      const wait = { signal: { name, key } };
      return (await ask("the signal could not be read", requests.findWaited(job, wait, signal))).signal as {
        payload: Json;
      } | null;
    },
    async findOutcomes(ids) {
      const found = requests.findWaited(job, { jobs: [...ids] }, signal);
      const { jobs } = await ask("the ends of jobs could not be read", found);
      return jobs.map(({ job_id: id, status, output }) => ({ id, status, output: output as Json }));
    },
    async enqueue(jobs) {
      const ids: string[] = [];
      for (let first = 0; first < jobs.length; first += childrenPerRequest) {
        const children = jobs.slice(first, first + childrenPerRequest).map(toChild);
        const started = requests.startChildren(job, children, signal);
        ids.push(...(await ask("jobs could not be enqueued", started)).job_ids);
      }
      return ids;
    },
  };
}

/** Its trace is a header of the request. */
function toChild({ traceparent: _, ...job }: NewJob): object {
  return snakeCased(job);
}

/** The handler is not told: it would take what was done for what has failed. */
function reasonOf(what: string, error: unknown): Error {
  const isRequest = error instanceof SluiceRequestError;
  if (isRequest && error.status === 409) return new LeaseLostError("the lease is lost");
  const message = `${what}: ${error instanceof Error ? error.message : error}`;
  return isRequest && [400, 413, 422].includes(error.status)
    ? new FatalError(message)
    : new RetryableError(message);
}

function setTimer(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}
