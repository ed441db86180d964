// A claim that waits: it claims again, about once a second, until a job has come, the time is over or the client has gone.
import type { Context } from "hono";
import { describeError } from "../../core/database-errors.ts";
import { type Claim, type Claimed, claim } from "../../core/sql/claim.ts";
import type { Clock, Ports } from "../../queue/ports.ts";
import { settleAttempts } from "../../queue/settle.ts";
import type { AppEnv } from "./app-env.ts";

/** With heartbeats and the look-ups of keys and live workers, an idle puller costs about one statement a second. */
const claimEveryMs = 1500;
/** The clock of a timer may differ by this much. */
const timerErrorMs = 50;

interface Waiting {
  clock: Clock;
  waitSeconds: number;
  /** Aborted when the client has gone, if the platform tells. */
  signal: AbortSignal;
}

/** Answers with the first claim that has jobs, or with the last one. */
export async function claimWithin(
  { clock, waitSeconds, signal }: Waiting,
  claimOnce: () => Promise<Claimed>,
): Promise<Claimed> {
  const endMs = clock.nowMs() + waitSeconds * 1000;
  for (;;) {
    const claimed = await claimOnce();
    const leftMs = endMs - clock.nowMs();
    if (claimed.jobs.length > 0 || leftMs < timerErrorMs || signal.aborted) return claimed;
    // The last claim is at the end of the time, and the others are evenly spread.
    await clock.sleep(leftMs / Math.max(1, Math.round(leftMs / claimEveryMs)));
    if (signal.aborted) return claimed;
  }
}

/**
 * Claims for the client of a request. `toClaim` says what, anew for each claim. If the client goes while a claim runs, the
 * jobs of that claim are released.
 */
export async function claimForClient(
  { env: { ports }, req, executionCtx }: Context<AppEnv>,
  toClaim: () => Promise<Claim>,
  { waitSeconds }: { waitSeconds: number },
): Promise<Claimed> {
  const { signal } = req.raw;
  const claiming = claimWithin({ clock: ports.clock, waitSeconds, signal }, async () =>
    ports.db.run(claim(await toClaim())),
  );
  // After the client has gone, the platform ends the invocation, except for what it waits for.
  const release = () => executionCtx.waitUntil(releaseAll(ports, claiming));
  signal.addEventListener("abort", release, { once: true });
  const claimed = await claiming;
  signal.removeEventListener("abort", release);
  return claimed;
}

async function releaseAll(ports: Ports, claiming: Promise<Claimed>): Promise<void> {
  try {
    const { jobs } = await claiming;
    const ended = jobs.map((job) => ({ job, outcome: { kind: "release" } as const }));
    if (ended.length > 0) await settleAttempts(ports, ended);
  } catch (error) {
    ports.log.warn("claim without a client not released", describeError(error));
  }
}
