// Registers the worker, so that the server can divide partition keys among the live workers of a queue.
import { SluiceRequestError } from "../client/request-error.ts";
import { sleep } from "../client/send.ts";
import type { Settings } from "./options.ts";
import type { Requests } from "./requests.ts";

/** The server forgets a worker 30 s after its last heartbeat. */
const everyMs = 10_000;

export interface Heartbeat {
  /** The first heartbeat. Rejects if the server refuses the key. */
  start(): Promise<void>;
  /** Resolves when the signal is aborted. */
  keepOn(): Promise<void>;
  /** Removes the worker, so that others get its keys at once. */
  leave(signal: AbortSignal): Promise<void>;
}

export function createHeartbeat(options: {
  settings: Settings;
  requests: Requests;
  ended: AbortSignal;
}): Heartbeat {
  const { settings, requests, ended } = options;
  let isKnown = true;

  async function beat(): Promise<void> {
    try {
      await requests.register(ended);
    } catch (error) {
      if (!(error instanceof SluiceRequestError) || [401, 403].includes(error.status)) throw error;
      if (error.status === 404) isKnown = false;
      else if (!ended.aborted) settings.onError(error);
    }
  }

  return {
    start: beat,
    async keepOn() {
      while (isKnown && !ended.aborted) {
        await sleep(everyMs, ended);
        if (!ended.aborted) await beat();
      }
    },
    async leave(signal) {
      if (!isKnown) return;
      await requests.leave(signal).catch((error: Error) => settings.onError(error));
    },
  };
}
