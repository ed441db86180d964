// SLUICE_HEARTBEAT_URL: the URL that each round calls.
import * as z from "zod";
import { jsonSetting } from "./json-setting.ts";

export interface HeartbeatUrls {
  drain: string | undefined;
  reap: string | undefined;
  watch: string | undefined;
}

const url = z.url({ protocol: /^https?$/, error: "must be an http or https URL" });

/** One URL for all rounds, or one for each kind. */
export const heartbeatUrls: z.ZodType<HeartbeatUrls> = z
  .preprocess(
    (value, context) => {
      if (typeof value !== "string" || value.trimStart().startsWith("{")) return value;
      if (!url.safeParse(value).success)
        context.addIssue({ code: "custom", message: "must be an http or https URL" });
      return { drain: value, reap: value, watch: value };
    },
    jsonSetting(z.strictObject({ drain: url.optional(), reap: url.optional(), watch: url.optional() })),
  )
  .transform(({ drain, reap, watch }): HeartbeatUrls => ({ drain, reap, watch }));
