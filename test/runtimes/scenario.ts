// What a producer does with sluice/client, written for any runtime. The result must be the same in each of them.
import { createClient, SluiceRequestError, SluiceTimeoutError } from "../../src/client/client.ts";

export interface ScenarioOptions {
  url: string;
  key: string;
  /** The tag of all its jobs. */
  tag: string;
}

const unknownId = "01900000-0000-7000-8000-000000000000";
const many = 150; // two requests

export async function runScenario({ url, key, tag }: ScenarioOptions): Promise<object> {
  const client = createClient({ url, key });
  const options = { tags: [tag], delaySeconds: 3600 };
  const id = await client.enqueue("echo", { hello: "wörld" }, { tags: [tag] });
  const done = await client.wait(id, { intervalMs: 50 });
  const ids = await client.enqueueMany(
    "echo",
    Array.from({ length: many }, (_, n) => ({ n })),
    options,
  );
  const [first = "", second = ""] = ids;
  const last = await client.get(ids.at(-1) ?? "");
  return {
    done: [done.status, done.output],
    ids: new Set(ids).size,
    last: [last.status, last.payload, last.tags],
    cancelled: (await client.cancel(first)).status,
    waitedInVain: await refusalOf(client.wait(second, { timeoutMs: 1 })),
    cancelledTooLate: await refusalOf(client.cancel(id)),
    unknown: await refusalOf(client.get(unknownId)),
    invalid: await refusalOf(client.enqueue("echo", {}, { priority: 99 })),
    unauthorized: await refusalOf(createClient({ url, key: "sk_of_nobody" }).get(id)),
    unreachable: await refusalOf(createClient({ url: "http://127.0.0.1:1", key, timeoutMs: 50 }).get(id)),
  };
}

async function refusalOf(request: Promise<unknown>): Promise<unknown> {
  try {
    await request;
  } catch (error) {
    if (error instanceof SluiceRequestError) return [error.status, error.problem.type];
    if (error instanceof SluiceTimeoutError) return error.job.status;
    throw error;
  }
  return "was not refused";
}
