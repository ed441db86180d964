// Connects the durable steps of one job to the drain that runs it.
import { CancelledError, LeaseLostError, RetryableError } from "../../core/errors.ts";
import type { ClaimedJob, Json, NewStep } from "../../core/job.ts";
import { enqueue, findOutcomes, findSignal } from "../../core/sql/index.ts";
import type { JobType, Ports } from "../ports.ts";
import type { StepHost } from "../steps/step-calls.ts";
import type { StepStore } from "./step-store.ts";
import { textOf } from "./storable.ts";

/** What a drain gives to the steps of all its jobs. */
export interface DrainSteps {
  readonly store: StepStore;
  hasRoom(seconds: number): boolean;
}

export function createStepHost(
  { clock, db }: Pick<Ports, "clock" | "db">,
  { store, hasRoom }: DrainSteps,
  options: {
    job: ClaimedJob;
    type: JobType;
    signal: AbortSignal;
    restart(): void;
    end(reason: Error): void;
  },
): StepHost {
  const { job, type, signal, restart, end } = options;
  return {
    jobId: job.id,
    traceparent: job.traceparent,
    clock,
    signal,
    timeoutSeconds: type.timeoutSeconds,
    hasRoom,
    restart,
    end,
    read: () =>
      store.read(job).catch((error) => {
        throw new RetryableError(`the stored steps could not be read: ${textOf(error)}`);
      }),
    findSignal: (name, key) => db.run(findSignal(name, key)),
    findOutcomes: (ids) => db.run(findOutcomes(ids)),
    enqueue: async (jobs) => (await db.run(enqueue(jobs))).map(({ id }) => id),
    async write(step) {
      const answer = signal.aborted ? undefined : await tryWrite(step);
      if (answer === null) end(new LeaseLostError("the lease is lost"));
      if (answer?.cancelRequested) end(new CancelledError("the job was cancelled"));
      if (!answer || signal.aborted) return new Promise(() => {});
      return Object.hasOwn(answer.steps, step.name) ? (answer.steps[step.name] as Json) : givenValue(step);
    },
  };

  /** The handler is not told: it would take what was done for what has failed. */
  async function tryWrite(step: NewStep) {
    try {
      return await store.write(job, step);
    } catch (error) {
      end(new RetryableError(`the step "${step.name}" could not be stored: ${textOf(error)}`));
      return undefined;
    }
  }
}

function givenValue(step: NewStep): Json {
  return "value" in step ? step.value : null;
}
