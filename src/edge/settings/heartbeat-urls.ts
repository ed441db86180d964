// SLUICE_HEARTBEAT_URL: who hears of every round.
import * as z from "zod";
import { jsonSetting } from "./json-setting.ts";

export interface HeartbeatUrls {
  drain: string | undefined;
  reap: string | undefined;
  watch: string | undefined;
}

const url = z.url({ protocol: /^https?$/, error: "is not an http(s) URL" });

/** One URL for all rounds, or one for each kind. */
export const heartbeatUrls = z
  .preprocess(
    (given, context) => {
      if (typeof given !== "string" || given.trimStart().startsWith("{")) return given;
      if (!url.safeParse(given).success)
        context.addIssue({ code: "custom", message: "is not an http(s) URL" });
      return { drain: given, reap: given, watch: given };
    },
    jsonSetting(z.strictObject({ drain: url.optional(), reap: url.optional(), watch: url.optional() })),
  )
  .transform((given): HeartbeatUrls => ({ drain: given.drain, reap: given.reap, watch: given.watch }));
