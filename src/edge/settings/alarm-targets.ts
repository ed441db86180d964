// SLUICE_ALARM_TARGETS: the URLs that notices are sent to, each with its format and secret.
import * as z from "zod";
import { targetName } from "../../contract/alarms.ts";
import type { AlarmTarget } from "../../queue/alarms/notify.ts";
import { jsonSetting } from "./json-setting.ts";

const maxTargets = 10;
const webhookSecret = z.string().refine(isWebhookSecret, "must be whsec_ followed by base64");
/** There are two while the secret is rotated. */
const webhookSecrets = z.preprocess((value) => [value].flat(), z.array(webhookSecret).min(1).max(2));

function isWebhookSecret(secret: string): boolean {
  try {
    return secret.startsWith("whsec_") && atob(secret.slice("whsec_".length)).length > 0;
  } catch {
    return false;
  }
}

const targetFields = { name: targetName, url: z.string() };
const target = z.discriminatedUnion("format", [
  z.strictObject({
    ...targetFields,
    format: z.literal("generic"),
    secret: webhookSecrets,
  }),
  z.strictObject({ ...targetFields, format: z.literal("slack"), secret: z.string().optional() }),
  z.strictObject({ ...targetFields, format: z.literal("pagerduty"), secret: z.string().min(1) }),
]);

export const alarmTargets = jsonSetting(
  z
    .array(z.preprocess(withFormat, target))
    .max(maxTargets)
    .refine(
      (targets) => new Set(targets.map((one) => one.name)).size === targets.length,
      "has two targets with the same name",
    ),
).transform((targets) =>
  targets.map(
    ({ secret, ...rest }): AlarmTarget => ({ ...rest, secrets: secret === undefined ? [] : [secret].flat() }),
  ),
);

function withFormat(value: unknown): unknown {
  return value !== null && typeof value === "object" ? { format: "generic", ...value } : value;
}
