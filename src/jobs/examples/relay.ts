// Continues with another job of its own type until no hops are left, to show a chain.
import * as z from "zod";
import { defineJob } from "../define.ts";

export const relay = defineJob("relay", {
  payload: z.object({ hops: z.number().int().min(0).max(10_000) }),
  timeoutSeconds: 10,
  run: ({ hops }, { again }) => (hops === 0 ? { done: true } : again({ hops: hops - 1 })),
});
