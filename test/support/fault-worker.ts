// The deployment of the fault tests: bundled, and run in a workerd that is killed.
import * as z from "zod";
import { defineJob, sluice } from "../../src/index.ts";

const payload = z.object({ ms: z.number() });
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

const work = defineJob("work", { payload, timeoutSeconds: 10, run: ({ ms }) => pause(ms) });

/** Ends the isolate: nothing else in its process gets a turn again. */
const poison = defineJob("poison", {
  payload,
  timeoutSeconds: 10,
  run: async ({ ms }) => {
    if (ms > 0) await pause(ms);
    for (;;);
  },
});

// Shorter leases than any deployment may have, so that what a dead process held comes back within a test.
export default sluice({ jobs: [{ ...work, leaseSeconds: 2 }, poison] });
