// The Sender port, for pushed jobs, alarms and heartbeats. It sends requests with fetch, and only to public hosts unless
// the deployment allows others. It follows no redirects. The time and the size of the answer are limited.
import { FatalError } from "../core/errors.ts";
import { findRefusal } from "../core/policy/outgoing-target.ts";
import { readAtMost, retryAfterSeconds } from "../queue/outgoing/answer.ts";
import type { Sender } from "../queue/ports.ts";

const maxErrorBytes = 500;

export function createSender({ allowPrivate }: { allowPrivate: boolean }): Sender {
  return {
    async send({ url, method, headers = {}, body = null, maxJsonBytes = 0, ...limit }) {
      const refusal = findRefusal(url, { allowPrivate });
      if (refusal) throw new FatalError(`the target ${refusal}`);
      const signal = "signal" in limit ? limit.signal : AbortSignal.timeout(limit.timeoutMs);
      const response = await fetch(url, { method, headers, body, redirect: "manual", signal });
      return {
        status: response.status,
        retryInSeconds: retryAfterSeconds(response.headers.get("retry-after"), Date.now()),
        ...(await readAnswer(response, { maxJsonBytes })),
      };
    },
  };
}

/** The status counts even if the rest of the answer never arrives. */
async function readAnswer(
  response: Response,
  { maxJsonBytes }: { maxJsonBytes: number },
): Promise<{ errorText: string; json?: string }> {
  try {
    if (!response.ok) return { errorText: await readAtMost(response, maxErrorBytes) };
    const isJson = response.headers.get("content-type")?.includes("json");
    const json = isJson && maxJsonBytes > 0 ? await readAtMost(response, maxJsonBytes + 1) : "";
    if (json && json.length <= maxJsonBytes) return { errorText: "", json };
    await response.body?.cancel();
  } catch {
    // The connection was cut.
  }
  return { errorText: "" };
}
