// The jobs that the blocks of the documentation import.
import { defineJob } from "sluice";
import * as z from "zod";

export const welcome = defineJob("welcome_email", {
  payload: z.object({ userId: z.string() }),
  run: () => ({ sent: true }),
});
