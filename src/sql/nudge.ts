// nudge: tells the Worker that jobs were enqueued by SQL, so that they start at once. Call it after the commit.

export interface NudgeEnv {
  /** A service binding to the Worker. Without it, its URL is needed. */
  SLUICE?: { fetch(url: string, init: RequestInit): Promise<Response> };
  /** The URL of the Worker. */
  SLUICE_URL?: string;
  /** A key with the role producer. */
  SLUICE_KEY: string;
}

const timeoutMs = 5_000;

/**
 * `ctx.waitUntil(nudge(env))`. Returns whether the Worker has accepted it. It never throws, because a nudge that is lost
 * costs only time: the cron finds the jobs.
 */
export async function nudge(
  { SLUICE, SLUICE_URL, SLUICE_KEY }: NudgeEnv,
  options: { queue?: string } = {},
): Promise<boolean> {
  const url = new URL("/v1/nudge", SLUICE_URL ?? "https://sluice.internal").href;
  const init = {
    method: "POST",
    headers: { authorization: `Bearer ${SLUICE_KEY}`, "content-type": "application/json" },
    body: JSON.stringify(options),
    signal: AbortSignal.timeout(timeoutMs),
  };
  try {
    const response = await (SLUICE ? SLUICE.fetch(url, init) : fetch(url, init));
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}
