// The deployment of the fault tests. It is bundled and runs in a workerd that the tests kill.
import * as z from "zod";
import { defineJob, sluice } from "../../src/index.ts";

const payload = z.object({ ms: z.number() });
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Ends the isolate: no other code in its process runs again. */
async function end(ms: number): Promise<never> {
  if (ms > 0) await pause(ms);
  for (;;);
}

const work = defineJob("work", {
  payload: payload.extend({ ends: z.boolean().default(false) }),
  timeoutSeconds: 10,
  run: ({ ms, ends }) => (ends ? end(ms) : pause(ms)),
});
const poison = defineJob("poison", { payload, timeoutSeconds: 10, run: ({ ms }) => end(ms) });

// Shorter leases than any deployment may have, so that the jobs of a dead process are pending again within a test.
const quick = defineJob("quick", { payload, timeoutSeconds: 10, run: ({ ms }) => pause(ms) });
const backoff = { baseSeconds: 3, maxSeconds: 3, jitterSeconds: 2 };
const second = defineJob("second", { payload, timeoutSeconds: 10, backoff, run: ({ ms }) => pause(ms) });

export default sluice({
  jobs: [{ ...work, leaseSeconds: 2 }, { ...second, leaseSeconds: 2 }, quick, poison],
});
