// The Worker's settings: its variables, secrets and bindings. A missing or invalid one is a single error that names it,
// and nothing runs with invalid settings.
import * as z from "zod";
import type { AlarmRule } from "../../core/alarms/alarm.ts";
import type { Deployment } from "../../core/alarms/notice.ts";
import { type Fault, SluiceError } from "../../core/errors.ts";
import { findRefusal } from "../../core/policy/outgoing-target.ts";
import { defaultSchema, schemaName, schemaNameFault } from "../../core/schema-name.ts";
import { faultsOf } from "../../jobs/faults.ts";
import { type KeyedTarget, keyTargets } from "../../queue/alarms/notify.ts";
import type { ClockBinding } from "../clock/clock-binding.ts";
import { type AccessSettings, accessSettings, missingAccess, toAccess } from "./access.ts";
import { alarmRuleSetting } from "./alarm-rules.ts";
import { alarmTargets } from "./alarm-targets.ts";
import { type HeartbeatUrls, heartbeatUrls } from "./heartbeat-urls.ts";

/** The Worker's binding to itself. */
export interface SelfBinding {
  fetch(url: string, init: RequestInit): Promise<Response>;
}

/** https://developers.cloudflare.com/hyperdrive/ */
interface HyperdriveBinding {
  connectionString: string;
}

/** https://developers.cloudflare.com/workers/runtime-apis/bindings/rate-limit/ */
export interface RateLimiter {
  limit(options: { key: string }): Promise<{ success: boolean }>;
}

const adminKey = z.string().min(16, "must have at least 16 characters");

const settingsSchema = z.object({
  DATABASE_URL: z.url({
    protocol: /^postgres(ql)?$/,
    error: "must be a postgresql:// connection string",
  }),
  SLUICE_ADMIN_KEY: adminKey,
  /** The previous key. It still works while the new one is distributed. */
  SLUICE_ADMIN_KEY_PREVIOUS: adminKey.optional(),
  SLUICE_SCHEMA: z.string().regex(schemaName, schemaNameFault).default(defaultSchema),
  /** Where the driver sends its queries instead of Neon's own host. The local stack sets it. */
  SLUICE_NEON_ENDPOINT: z.url("must be a URL").optional(),
  SLUICE_PLAN: z.enum(["free", "paid"], 'must be "free" or "paid"').default("paid"),
  SLUICE_MAX_DRAINS: z.coerce
    .number("must be a number")
    .int("must be a whole number")
    .min(1, "must be at least 1")
    .max(30, "must be at most 30")
    .default(4),
  SLUICE_MAX_DEPTH: z.coerce
    .number("must be a number")
    .int("must be a whole number")
    .min(1, "must be at least 1")
    .default(100_000),
  SLUICE_MAX_SLEEP_MINUTES: z.coerce
    .number("must be a number")
    .min(0, "must be at least 0")
    .max(10_080, "must be at most 10080")
    .default(0),
  SLUICE_LOG_JOBS: z.enum(["true", "false"], 'must be "true" or "false"').default("false"),
  SLUICE_ALLOW_PRIVATE_TARGETS: z.enum(["true", "false"], 'must be "true" or "false"').default("false"),
  SLUICE_ALARM_TARGETS: alarmTargets.prefault([]),
  SLUICE_ALARM_RULES: alarmRuleSetting.prefault({}),
  SLUICE_HEARTBEAT_URL: heartbeatUrls.prefault({}),
  /** The URL of this Worker. Notices link to it. */
  SLUICE_PUBLIC_URL: z.url({ protocol: /^https?$/, error: "must be an http or https URL" }).optional(),
  /** A page that says what to do about each alarm. Notices link to it. */
  SLUICE_RUNBOOK_URL: z.url({ protocol: /^https?$/, error: "must be an http or https URL" }).optional(),
  SLUICE_ENVIRONMENT: z
    .string()
    .regex(/^\P{Cc}{1,64}$/u, "must have 1 to 64 characters and no control characters")
    .optional(),
  ...accessSettings,
  SELF: binding<SelfBinding>("fetch", "must be a service binding"),
  RATE_LIMITER: binding<RateLimiter>("limit", "must be a rate limit binding"),
  CLOCK: binding<ClockBinding>("getByName", "must be a Durable Object binding"),
  HYPERDRIVE: z.custom<HyperdriveBinding>(isHyperdrive, "must be a Hyperdrive binding").optional(),
});
const settingsOfHyperdrive = settingsSchema.partial({ DATABASE_URL: true });

function isHyperdrive(value: unknown): boolean {
  return typeof (value as HyperdriveBinding | null)?.connectionString === "string";
}

function binding<Binding extends object>(method: keyof Binding, error: string) {
  return z
    .custom<Binding>((value) => typeof (value as Binding | null)?.[method] === "function", error)
    .optional();
}

export interface Settings {
  /** Without it there is Hyperdrive. */
  databaseUrl: string | undefined;
  /** Its host is another one in each isolate. */
  hyperdriveUrl: string | undefined;
  /** Where the database is: always the same for one database, and without secrets. */
  databaseAddress: Pick<URL, "host" | "hostname" | "pathname">;
  /** The current key first. While it is rotated, the previous key follows. */
  adminKeys: readonly string[];
  schema: string;
  neonEndpoint: string | undefined;
  /** The Cloudflare plan. It decides how many subrequests an invocation may send. */
  plan: "free" | "paid";
  /** The most drains of one queue in one cron round, each in an invocation of its own. */
  maxDrains: number;
  /** A queue with this many waiting jobs accepts no more over HTTP. */
  maxDepth: number;
  /** Whether every job that ends is logged. */
  logJobs: boolean;
  allowPrivateTargets: boolean;
  alarmTargets: readonly KeyedTarget[];
  alarmRules: readonly AlarmRule[];
  heartbeatUrls: HeartbeatUrls;
  deployment: Deployment;
  /** The name in the dashboard's head. */
  environment: string | undefined;
  /** Cloudflare Access in front of the dashboard. */
  access: AccessSettings | undefined;
  /** Without it a round drains all queues in one invocation. */
  self: SelfBinding | undefined;
  /** Without it only the isolates count calls. */
  rateLimiter: RateLimiter | undefined;
  /** Without it, delayed jobs and retries wait for the cron. */
  clock: ClockBinding | undefined;
  /** How long the crons may leave an idle database alone. 0: not at all. */
  maxSleepMinutes: number;
}

const parsedSettings = new WeakMap<object, Settings>();

/** The platform passes the same object to every invocation of an isolate, so each isolate parses once. */
export async function settingsFor(env: object): Promise<Settings> {
  // The cache has the value and not its promise, because a promise belongs to the request that made it.
  const settings = parsedSettings.get(env) ?? (await parseSettings(env));
  parsedSettings.set(env, settings);
  return settings;
}

export async function parseSettings(env: object): Promise<Settings> {
  const hasHyperdrive = (env as { HYPERDRIVE?: unknown }).HYPERDRIVE !== undefined;
  const parsed = (hasHyperdrive ? settingsOfHyperdrive : settingsSchema).safeParse(env);
  if (!parsed.success) throw settingsError(parsed.error, env);
  const allowPrivateTargets = parsed.data.SLUICE_ALLOW_PRIVATE_TARGETS === "true";
  const missing = missingAccess(parsed.data).map((path) => ({
    path,
    message: "is not set: Access needs all three",
  }));
  const refusals = listOutgoingUrls(parsed.data).flatMap(({ path, url }) => {
    const message = findRefusal(url, { allowPrivate: allowPrivateTargets });
    return message ? [{ path, message }] : [];
  });
  if (refusals.length + missing.length > 0) throw invalidSettings([...refusals, ...missing]);
  const databaseAddress = addressOf(parsed.data);
  return {
    databaseUrl: parsed.data.DATABASE_URL,
    hyperdriveUrl: parsed.data.HYPERDRIVE?.connectionString,
    databaseAddress,
    adminKeys: [parsed.data.SLUICE_ADMIN_KEY, parsed.data.SLUICE_ADMIN_KEY_PREVIOUS].filter(
      (key) => key !== undefined,
    ),
    schema: parsed.data.SLUICE_SCHEMA,
    neonEndpoint: parsed.data.SLUICE_NEON_ENDPOINT,
    plan: parsed.data.SLUICE_PLAN,
    maxDrains: parsed.data.SLUICE_MAX_DRAINS,
    maxDepth: parsed.data.SLUICE_MAX_DEPTH,
    logJobs: parsed.data.SLUICE_LOG_JOBS === "true",
    allowPrivateTargets,
    alarmTargets: await keyTargets(parsed.data.SLUICE_ALARM_TARGETS),
    alarmRules: parsed.data.SLUICE_ALARM_RULES,
    heartbeatUrls: parsed.data.SLUICE_HEARTBEAT_URL,
    deployment: {
      name: deploymentName(parsed.data, databaseAddress),
      publicUrl: parsed.data.SLUICE_PUBLIC_URL,
      runbookUrl: parsed.data.SLUICE_RUNBOOK_URL,
    },
    environment: parsed.data.SLUICE_ENVIRONMENT,
    access: toAccess(parsed.data),
    self: parsed.data.SELF,
    rateLimiter: parsed.data.RATE_LIMITER,
    clock: parsed.data.CLOCK,
    maxSleepMinutes: parsed.data.SLUICE_MAX_SLEEP_MINUTES,
  };
}

type Parsed = z.output<typeof settingsOfHyperdrive>;

/** Hyperdrive's binding has another host in each isolate. */
function addressOf({ DATABASE_URL, HYPERDRIVE }: Parsed): Settings["databaseAddress"] {
  const { host, hostname, pathname } = new URL(DATABASE_URL ?? HYPERDRIVE?.connectionString ?? "");
  return DATABASE_URL === undefined
    ? { host: "hyperdrive", hostname: "hyperdrive", pathname }
    : { host, hostname, pathname };
}

/** The fallback differs between deployments, because two never share a schema of one database. */
function deploymentName(parsed: Parsed, { hostname, pathname }: Settings["databaseAddress"]): string {
  if (parsed.SLUICE_ENVIRONMENT !== undefined) return parsed.SLUICE_ENVIRONMENT;
  if (parsed.SLUICE_PUBLIC_URL !== undefined) return new URL(parsed.SLUICE_PUBLIC_URL).host;
  return `${hostname}${pathname}/${parsed.SLUICE_SCHEMA}`;
}

/** All URLs in the settings that the Worker sends requests to. */
function listOutgoingUrls(parsed: Parsed): { path: string; url: string }[] {
  const targets = parsed.SLUICE_ALARM_TARGETS.map(({ url }, index) => ({
    path: `SLUICE_ALARM_TARGETS.${index}.url`,
    url,
  }));
  const heartbeats = new Set(Object.values(parsed.SLUICE_HEARTBEAT_URL).filter((url) => url !== undefined));
  const team = parsed.SLUICE_ACCESS_TEAM_DOMAIN;
  return [
    ...targets,
    ...[...heartbeats].map((url) => ({ path: "SLUICE_HEARTBEAT_URL", url })),
    ...(team === undefined ? [] : [{ path: "SLUICE_ACCESS_TEAM_DOMAIN", url: team }]),
  ];
}

function settingsError(error: z.ZodError, env: object): SluiceError {
  const names = new Set(Object.keys(env));
  return invalidSettings(
    faultsOf(error).map(({ path, message }) => ({
      path,
      message: names.has(path.split(".")[0] ?? "") ? message : "is not set",
    })),
  );
}

function invalidSettings(faults: Fault[]): SluiceError {
  const list = faults.map(({ path, message }) => `${path} ${message}`).join("; ");
  return new SluiceError("settings_invalid", `invalid settings: ${list}`, { faults });
}
