// The deployment of the fault tests. It is bundled and runs in a workerd that the tests kill.
import { neon, neonConfig } from "@neondatabase/serverless";
import * as z from "zod";
import { defineJob, sluice } from "../../src/index.ts";

const payload = z.object({ ms: z.number() });
const durablePayload = z.object({ steps: z.number(), ms: z.number() });
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

interface Env {
  DATABASE_URL: string;
  SLUICE_NEON_ENDPOINT: string;
}

/** Each function writes a row before it does anything, and in it whether its step was stored already. */
const durable = defineJob<typeof durablePayload, Env>("durable", {
  payload: durablePayload,
  timeoutSeconds: 10,
  run: async ({ steps, ms }, { step, jobId, env }) => {
    neonConfig.fetchEndpoint = env.SLUICE_NEON_ENDPOINT;
    const db = neon(env.DATABASE_URL);
    const body = (name: string, value: number) => async () => {
      const isStored = "exists (select from sluice.checkpoint where id = $1 and name = $2)";
      await db.query(`insert into step_run (job, step, was_stored) select $1, $2, ${isStored}`, [
        jobId,
        name,
      ]);
      await pause(ms);
      return value;
    };
    let sum = 0;
    for (let n = 1; n <= steps; n++) sum += await step.run(`step ${n}`, body(`step ${n}`, n));
    await step.sleep("rest", 0.05);
    const beside = ["left", "right"].map((name) => step.run(name, body(name, 1)));
    return { sum: sum + (await Promise.all(beside)).reduce((a, b) => a + b) };
  },
});

// Shorter leases than any deployment may have, so that the jobs of a dead process are pending again within a test.
const quick = defineJob("quick", { payload, timeoutSeconds: 10, run: ({ ms }) => pause(ms) });
const backoff = { baseSeconds: 3, maxSeconds: 3, jitterSeconds: 2 };
const second = defineJob("second", { payload, timeoutSeconds: 10, backoff, run: ({ ms }) => pause(ms) });

export default sluice({
  jobs: [
    { ...work, leaseSeconds: 2 },
    { ...second, leaseSeconds: 2 },
    { ...durable, leaseSeconds: 2 },
    quick,
    poison,
  ],
});
