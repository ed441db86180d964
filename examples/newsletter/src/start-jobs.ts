import { nudge } from "sluice/sql";

/** Starts jobs that were enqueued by SQL at once. Without it they wait for the next cron, for up to a minute. */
export function startJobs({ SELF, SLUICE_ADMIN_KEY }: Cloudflare.Env): Promise<boolean> {
  return nudge({ SLUICE: SELF, SLUICE_KEY: SLUICE_ADMIN_KEY });
}
