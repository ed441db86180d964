// The job types of this Worker, by name.
import { defineJob } from "sluice";
import * as z from "zod";

const hello = defineJob("hello", {
  payload: z.object({ hello: z.string() }),
  timeoutSeconds: 20,
  run: ({ hello: name }, { log }) => {
    log.info("hello", { name });
    return { greeting: `Hello, ${name}!` };
  },
});

export const jobs = { hello };
