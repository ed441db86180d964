// The Sender port: fetch, to public hosts unless the deployment allows others, without following redirects, for a bounded
// time and reading a bounded answer.
import { refusalOf } from "../core/policy/outgoing-target.ts";
import { readAtMost, retryAfterSeconds } from "../queue/outgoing/answer.ts";
import type { Sender } from "../queue/ports.ts";

const maxSaidBytes = 500;

export function createSender({ allowPrivate }: { allowPrivate: boolean }): Sender {
  return {
    async send({ url, timeoutMs, ...request }) {
      const refusal = refusalOf(url, { allowPrivate });
      if (refusal) throw new Error(`the target ${refusal}`);
      const response = await fetch(url, {
        ...request,
        redirect: "manual",
        signal: AbortSignal.timeout(timeoutMs),
      });
      return {
        status: response.status,
        retryInSeconds: retryAfterSeconds(response.headers.get("retry-after"), Date.now()),
        said: await saidBy(response),
      };
    },
  };
}

/** The status counts, also when what should follow it never comes. */
async function saidBy(response: Response): Promise<string> {
  try {
    if (!response.ok) return await readAtMost(response, maxSaidBytes);
    await response.body?.cancel();
  } catch {
    // It was cut off.
  }
  return "";
}
