// Fails for good with the given message, to show dead letters.
import * as z from "zod";
import { FatalError } from "../../core/errors.ts";
import { defineJob } from "../define.ts";

export const fatal = defineJob("fatal", {
  payload: z.object({ message: z.string() }),
  timeoutSeconds: 10,
  run: ({ message }) => {
    throw new FatalError(message);
  },
});
