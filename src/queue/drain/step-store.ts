// Reads and stores the durable steps of a drain's jobs. What comes together, or while a statement is on its way, goes with one
// statement, whatever jobs it belongs to: an invocation has a limited number of them.
import { SluiceError } from "../../core/errors.ts";
import type { ClaimedJob, NewStep, StepValues } from "../../core/job.ts";
import type { Checkpointed } from "../../core/sql/checkpoint.ts";
import { checkpoint, findSteps } from "../../core/sql/index.ts";
import type { Ports } from "../ports.ts";

const stepsPerStatement = 200;
/** Values can be large. */
const charactersPerStatement = 512 * 1024;
/** About three seconds. */
const maxFailuresInARow = 7;
const firstPauseMs = 25;
const defaultLeaseSeconds = 300;

export interface StepStore {
  read(job: ClaimedJob): Promise<{ steps: StepValues; nowMs: number }>;
  /** Null if the lease is lost. Rejects if the database refuses the step, or is unreachable for too long. */
  write(job: ClaimedJob, step: NewStep): Promise<Checkpointed | null>;
}

interface Waiting<Request, Answer> {
  readonly request: Request;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

type Write = { job: ClaimedJob; step: NewStep };

export function createStepStore(ports: Ports): StepStore {
  const readMany = createQueue<ClaimedJob, { steps: StepValues; nowMs: number }>(
    ports,
    (jobs) => jobs.length,
    async (jobs) => {
      const { byJob, nowMs } = await ports.db.run(findSteps(jobs.map(({ id }) => id)));
      return jobs.map(({ id }) => ({ steps: byJob[id] ?? {}, nowMs }));
    },
  );
  const writeMany = createQueue<Write, Checkpointed | null>(ports, countThatFits, (writes) =>
    storeSteps(ports, writes),
  );
  return {
    read: async (job) => {
      ports.registry.stepTypes.add(job.type); // the next claim brings the steps along
      return job.stored ?? readMany(job);
    },
    write: (job, step) => writeMany({ job, step }),
  };
}

async function storeSteps(ports: Ports, writes: readonly Write[]): Promise<(Checkpointed | null)[]> {
  const byJob = Map.groupBy(writes, ({ job }) => job);
  const checkpoints = [...byJob].map(([job, ofJob]) => ({ job, steps: ofJob.map(({ step }) => step) }));
  const leases = checkpoints.map(
    ({ job }) => ports.registry.find(job.type)?.leaseSeconds ?? defaultLeaseSeconds,
  );
  const answers = await ports.db.run(checkpoint(checkpoints, { seconds: Math.min(...leases) }));
  const answerOf = new Map(checkpoints.map(({ job }, index) => [job, answers[index] ?? null]));
  return writes.map(({ job }) => answerOf.get(job) ?? null);
}

function countThatFits(writes: readonly Write[]): number {
  let characters = 0;
  const count = writes.findIndex(({ step }, index) => {
    characters += JSON.stringify(step).length;
    return index > 0 && (characters > charactersPerStatement || index >= stepsPerStatement);
  });
  return count === -1 ? writes.length : count;
}

/** Answers each request by itself, and sends those that wait with one statement. One statement is sent at a time. */
function createQueue<Request, Answer>(
  ports: Ports,
  countThatFits: (requests: readonly Request[]) => number,
  send: (requests: readonly Request[]) => Promise<readonly Answer[]>,
): (request: Request) => Promise<Answer> {
  const waiting: Waiting<Request, Answer>[] = [];
  let isSending = false;

  async function sendAll(): Promise<void> {
    isSending = true;
    await Promise.resolve(); // what is asked for in the same turn goes along
    while (waiting.length > 0) {
      await sendBatch(waiting.splice(0, countThatFits(waiting.map(({ request }) => request))));
    }
    isSending = false;
  }

  /** Never rejects. A batch that the database refuses is sent one by one. */
  async function sendBatch(batch: readonly Waiting<Request, Answer>[]): Promise<void> {
    try {
      const answers = await tryOften(ports, () => send(batch.map(({ request }) => request)));
      for (const [index, { resolve }] of batch.entries()) resolve(answers[index] as Answer);
    } catch (error) {
      if (batch.length === 1 || isFromDatabase(error)) for (const { reject } of batch) reject(error);
      else for (const one of batch) await sendBatch([one]);
    }
  }

  return (request) => {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    waiting.push({ request, resolve, reject });
    if (!isSending) void sendAll();
    return promise;
  };
}

async function tryOften<Answer>({ clock }: Ports, send: () => Promise<Answer>): Promise<Answer> {
  for (let failures = 1; ; failures++) {
    try {
      return await send();
    } catch (error) {
      if (!isFromDatabase(error) || failures >= maxFailuresInARow) throw error;
      await clock.sleep(firstPauseMs * 2 ** failures);
    }
  }
}

/** The database cannot work now. Any other error is a refusal. */
function isFromDatabase(error: unknown): boolean {
  return error instanceof SluiceError && /^(database|schema)_/.test(error.code);
}
