// The Worker's settings. A missing or bad one is a single clear error that names it, and nothing runs on
// settings that do not hold.
import * as z from "zod";
import type { AlarmRule } from "../../core/alarms/alarm.ts";
import type { Deployment } from "../../core/alarms/notice.ts";
import { type Fault, SluiceError } from "../../core/errors.ts";
import { refusalOf } from "../../core/policy/outgoing-target.ts";
import { defaultSchema, schemaName, schemaNameFault } from "../../core/schema-name.ts";
import { faultsOf } from "../../jobs/faults.ts";
import type { AlarmTarget } from "../../queue/alarms/notify.ts";
import { alarmRuleSetting } from "./alarm-rules.ts";
import { alarmTargets } from "./alarm-targets.ts";
import { type HeartbeatUrls, heartbeatUrls } from "./heartbeat-urls.ts";

const adminKey = z.string().min(16, "is shorter than 16 characters");

const settingsSchema = z.object({
  DATABASE_URL: z.url({
    protocol: /^postgres(ql)?$/,
    error: "is not a postgresql:// connection string",
  }),
  SLUICE_ADMIN_KEY: adminKey,
  /** The one before, which still works while the new one is handed out. */
  SLUICE_ADMIN_KEY_PREVIOUS: adminKey.optional(),
  SLUICE_SCHEMA: z.string().regex(schemaName, schemaNameFault).default(defaultSchema),
  /** Where the driver sends its queries instead of Neon's own host. The local stack sets it. */
  SLUICE_NEON_ENDPOINT: z.url("is not a URL").optional(),
  SLUICE_PLAN: z.enum(["free", "paid"], 'is neither "free" nor "paid"').default("paid"),
  SLUICE_MAX_DRAINS: z.coerce
    .number("is not a number")
    .int("is not a whole number")
    .min(1, "is less than 1")
    .max(30, "is more than 30")
    .default(4),
  SLUICE_MAX_DEPTH: z.coerce
    .number("is not a number")
    .int("is not a whole number")
    .min(1, "is less than 1")
    .default(100_000),
  SLUICE_ALLOW_PRIVATE_TARGETS: z.enum(["true", "false"], 'is neither "true" nor "false"').default("false"),
  SLUICE_ALARM_TARGETS: alarmTargets.prefault([]),
  SLUICE_ALARM_RULES: alarmRuleSetting.prefault({}),
  SLUICE_HEARTBEAT_URL: heartbeatUrls.prefault({}),
  /** Where this Worker answers: notices link to it. */
  SLUICE_PUBLIC_URL: z.url({ protocol: /^https?$/, error: "is not an http(s) URL" }).optional(),
  /** Where a person who is told of an alarm can read what to do. */
  SLUICE_RUNBOOK_URL: z.url({ protocol: /^https?$/, error: "is not an http(s) URL" }).optional(),
  SLUICE_ENVIRONMENT: z
    .string()
    .regex(/^\P{Cc}{1,64}$/u, "is empty, longer than 64 characters, or has control characters")
    .optional(),
});

export interface Settings {
  databaseUrl: string;
  /** The current one first, then the previous one while it is rotated. */
  adminKeys: readonly string[];
  schema: string;
  neonEndpoint: string | undefined;
  /** The Cloudflare plan: how many subrequests an invocation may make. */
  plan: "free" | "paid";
  /** Of one queue in one cron round, each in an invocation of its own. */
  maxDrains: number;
  /** Past so many waiting jobs a queue takes no more over HTTP. */
  maxDepth: number;
  allowPrivateTargets: boolean;
  alarmTargets: readonly AlarmTarget[];
  alarmRules: readonly AlarmRule[];
  heartbeatUrls: HeartbeatUrls;
  deployment: Deployment;
}

const parsedSettings = new WeakMap<object, Settings>();

/** The platform hands the same object to every invocation of an isolate, so each isolate parses once. */
export function settingsOf(env: object): Settings {
  const settings = parsedSettings.get(env) ?? parseSettings(env);
  parsedSettings.set(env, settings);
  return settings;
}

export function parseSettings(env: object): Settings {
  const parsed = settingsSchema.safeParse(env);
  if (!parsed.success) throw settingsError(parsed.error, env);
  const allowPrivateTargets = parsed.data.SLUICE_ALLOW_PRIVATE_TARGETS === "true";
  const refused = outgoing(parsed.data).flatMap(({ path, url }) => {
    const message = refusalOf(url, { allowPrivate: allowPrivateTargets });
    return message ? [{ path, message }] : [];
  });
  if (refused.length > 0) throw refusedSettings(refused);
  return {
    databaseUrl: parsed.data.DATABASE_URL,
    adminKeys: [parsed.data.SLUICE_ADMIN_KEY, parsed.data.SLUICE_ADMIN_KEY_PREVIOUS].filter(
      (key) => key !== undefined,
    ),
    schema: parsed.data.SLUICE_SCHEMA,
    neonEndpoint: parsed.data.SLUICE_NEON_ENDPOINT,
    plan: parsed.data.SLUICE_PLAN,
    maxDrains: parsed.data.SLUICE_MAX_DRAINS,
    maxDepth: parsed.data.SLUICE_MAX_DEPTH,
    allowPrivateTargets,
    alarmTargets: parsed.data.SLUICE_ALARM_TARGETS,
    alarmRules: parsed.data.SLUICE_ALARM_RULES,
    heartbeatUrls: parsed.data.SLUICE_HEARTBEAT_URL,
    deployment: {
      name: deploymentName(parsed.data),
      publicUrl: parsed.data.SLUICE_PUBLIC_URL,
      runbookUrl: parsed.data.SLUICE_RUNBOOK_URL,
    },
  };
}

/** Two deployments differ in it, also where nobody named them: they do not share a schema of one database. */
function deploymentName(parsed: z.output<typeof settingsSchema>): string {
  if (parsed.SLUICE_ENVIRONMENT !== undefined) return parsed.SLUICE_ENVIRONMENT;
  if (parsed.SLUICE_PUBLIC_URL !== undefined) return new URL(parsed.SLUICE_PUBLIC_URL).host;
  const { hostname, pathname } = new URL(parsed.DATABASE_URL);
  return `${hostname}${pathname}/${parsed.SLUICE_SCHEMA}`;
}

/** Everywhere that the settings send requests to. */
function outgoing(parsed: z.output<typeof settingsSchema>): { path: string; url: string }[] {
  const targets = parsed.SLUICE_ALARM_TARGETS.map(({ url }, index) => ({
    path: `SLUICE_ALARM_TARGETS.${index}.url`,
    url,
  }));
  const heartbeats = new Set(Object.values(parsed.SLUICE_HEARTBEAT_URL).filter((url) => url !== undefined));
  return [...targets, ...[...heartbeats].map((url) => ({ path: "SLUICE_HEARTBEAT_URL", url }))];
}

function settingsError(error: z.ZodError, env: object): SluiceError {
  const given = new Set(Object.keys(env));
  return refusedSettings(
    faultsOf(error).map(({ path, message }) => ({
      path,
      message: given.has(path.split(".")[0] ?? "") ? message : "is not set",
    })),
  );
}

function refusedSettings(faults: Fault[]): SluiceError {
  const list = faults.map(({ path, message }) => `${path} ${message}`).join("; ");
  return new SluiceError("settings_invalid", `the Worker's settings do not hold: ${list}`, {
    faults,
  });
}
