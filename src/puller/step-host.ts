// Connects the durable steps of one pulled job to the API.
import { SluiceRequestError } from "../client/request-error.ts";
import { sleep } from "../client/send.ts";
import { CancelledError, FatalError, LeaseLostError, RetryableError } from "../core/errors.ts";
import type { Json, NewStep } from "../core/job.ts";
import type { StepHost } from "../queue/steps/step-calls.ts";
import type { ClaimedJob } from "./options.ts";
import type { Requests } from "./requests.ts";

export function createStepHost(
  job: ClaimedJob,
  requests: Requests,
  call: Pick<StepHost, "signal" | "timeoutSeconds" | "restart" | "end">,
): StepHost {
  const { signal, end } = call;
  const refuse = () => Promise.reject(new FatalError("a puller can not wait for signals and children"));
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
      const answer = await requests
        .storeSteps(job, [step], signal)
        .catch((error) => void end(reasonOf(step, error)));
      if (answer?.cancel_requested) end(new CancelledError("the job was cancelled"));
      if (!answer || signal.aborted) return new Promise(() => {});
      return Object.hasOwn(answer.steps, step.name)
        ? (answer.steps[step.name] as Json)
        : "value" in step
          ? step.value
          : null;
    },
    findSignal: refuse,
    findOutcomes: refuse,
    enqueue: refuse,
  };
}

/** The handler is not told: it would take what was done for what has failed. */
function reasonOf(step: NewStep, error: unknown): Error {
  const isRequest = error instanceof SluiceRequestError;
  if (isRequest && error.status === 409) return new LeaseLostError("the lease is lost");
  const message = `the step "${step.name}" could not be stored: ${error instanceof Error ? error.message : error}`;
  return isRequest && [400, 413, 422].includes(error.status)
    ? new FatalError(message)
    : new RetryableError(message);
}

function setTimer(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}
