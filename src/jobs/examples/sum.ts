// Waits for any number of echo jobs and adds up their numbers, to show a fan-in.
import * as z from "zod";
import { defineJob } from "../define.ts";
import { echo } from "./echo.ts";

export const sum = defineJob("sum", {
  payload: z.looseObject({}),
  after: { parts: [echo] },
  timeoutSeconds: 10,
  run: (_, { blockers }) => {
    const numbers = blockers.parts.map(({ status, output }) =>
      status === "completed" ? z.object({ n: z.number() }).safeParse(output).data?.n : 0,
    );
    return { total: numbers.reduce<number>((total, n) => total + (n ?? 0), 0) };
  },
});
