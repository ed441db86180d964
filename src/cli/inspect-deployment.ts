// What `sluice doctor` finds in what a deployment says about itself.
import type { Answer, Api } from "./api.ts";
import { age, ago, count, plural } from "./output/words.ts";

export interface Finding {
  check: string;
  /** A note is worth knowing and not wrong. */
  level: "ok" | "note" | "wrong";
  found: string;
}

/** A transaction that is older than this keeps many dead rows. */
const oldTransactionSeconds = 3600;
const clockToleranceSeconds = 5;
const healthyWords = ["ok", "starting", "asleep"];
const crons = ["drain", "reap", "watch"];

export async function inspectDeployment(api: Api): Promise<Finding[]> {
  const [health, deployment, stats, types, alarms] = await Promise.all([
    api.call("getHealth"),
    api.call("getDeployment"),
    api.call("getStats"),
    api.call("listJobTypes"),
    api.call("listAlarms"),
  ]);
  return [
    ...inspectHealth(health),
    { check: "version", level: "ok", found: `${deployment.version}, named ${deployment.name}` },
    ...(api.isOverSql
      ? []
      : [inspectVersion(deployment), ...inspectBindings(deployment), ...inspectClock(health)]),
    ...inspectCrons(stats),
    ...inspectLimits(deployment, types, api),
    ...inspectAlarms(alarms, deployment, api),
    inspectClocks(deployment),
    inspectTransaction(deployment),
  ];
}

function inspectHealth({ status, checks: { clock: _, ...checks } }: Answer<"getHealth">): Finding[] {
  const wrong = Object.entries(checks).filter(([, word]) => !healthyWords.includes(String(word)));
  if (wrong.length === 0)
    return [{ check: "health", level: status === "ok" ? "ok" : "wrong", found: status }];
  return wrong.map(([check, word]) => ({ check: `health of ${check}`, level: "wrong", found: String(word) }));
}

function inspectVersion({ schema: { name, version, needed } }: Answer<"getDeployment">): Finding {
  const found = `${version} in the schema "${name}"; the Worker needs ${needed}`;
  return { check: "schema version", level: version >= needed ? "ok" : "wrong", found };
}

/** Each binding may be missing. Then something works in another way. */
function inspectBindings({ bindings }: Answer<"getDeployment">): Finding[] {
  const without = {
    self: "a cron round drains all queues in one invocation",
    rate_limiter: "each isolate counts a key's calls by itself",
    clock: "delayed jobs and retries wait for the cron",
    hyperdrive: "the Worker reaches the database over Neon's HTTP",
  };
  return Object.entries(bindings).map(([name, isBound]) => ({
    check: `binding ${name.toUpperCase()}`,
    level: isBound ? "ok" : "note",
    found: isBound
      ? name === "hyperdrive"
        ? "bound, and its cache is off"
        : "bound"
      : `not bound: ${without[name as keyof typeof without] ?? ""}`,
  }));
}

function inspectClock({ checks: { clock } }: Answer<"getHealth">): Finding[] {
  if (!clock) return [];
  const next = clock.next_due_at ? `; the next job is due at ${clock.next_due_at}` : "";
  const sleep = clock.asleep ? "; the database sleeps" : "; the database is awake";
  return [
    {
      check: "clock",
      level: clock.status === "ok" ? "ok" : "wrong",
      found: `${clock.status}${sleep}${next}`,
    },
  ];
}

function inspectCrons({ rounds }: Answer<"getStats">): Finding[] {
  return crons.map((kind) => {
    const last = rounds.find((round) => round.kind === kind);
    if (!last)
      return { check: `cron ${kind}`, level: "wrong", found: "never seen: check the crons of wrangler.toml" };
    const hasFailed = last.reason === "error";
    const message = hasFailed ? `; it failed: ${last.message ?? "without a message"}` : "";
    return {
      check: `cron ${kind}`,
      level: hasFailed ? "wrong" : "ok",
      found: `last ended ${ago(last.ended_at)}${message}`,
    };
  });
}

function inspectLimits(
  { settings }: Answer<"getDeployment">,
  { job_types: types }: Answer<"listJobTypes">,
  { isOverSql }: Api,
): Finding[] {
  if (isOverSql)
    return [{ check: "limits", level: "note", found: "the Worker's settings are not known to the database" }];
  const limited = types.filter(({ concurrency, rate }) => concurrency !== null || rate !== null);
  const sleep =
    settings.max_sleep_minutes > 0 ? `sleeps for up to ${settings.max_sleep_minutes} min` : "never sleeps";
  const found = [
    `plan ${settings.plan}`,
    `${settings.max_drains} drains a queue and round`,
    `${count(settings.max_depth)} waiting jobs a queue`,
    `the database ${sleep}`,
    `${limited.length} of ${plural(types.length, "type")} with limits`,
  ];
  return [{ check: "limits", level: "ok", found: found.join(", ") }];
}

function inspectAlarms(
  { alarms, targets }: Answer<"listAlarms">,
  { settings }: Answer<"getDeployment">,
  { isOverSql }: Api,
): Finding[] {
  const firing = alarms.filter(({ state }) => state === "firing");
  const failing = targets.filter(({ state }) => state !== "ok");
  const none: Finding = { check: "alarm targets", level: "note", found: "none: alarms are only logged" };
  const heartbeat: Finding = {
    check: "heartbeat",
    level: "note",
    found: "none: nobody outside notices if the crons stop",
  };
  return [
    ...firing.map(
      ({ alarm, summary }): Finding => ({ check: `alarm ${alarm}`, level: "wrong", found: summary }),
    ),
    ...failing.map(
      ({ name, state, error }): Finding => ({
        check: `alarm target ${name}`,
        level: "wrong",
        found: [state, error].filter((text) => text !== null).join(": "),
      }),
    ),
    ...(settings.alarm_targets.length === 0 && !isOverSql ? [none] : []),
    ...(settings.heartbeats.length === 0 && !isOverSql ? [heartbeat] : []),
  ];
}

/** The clock of who asked the database: the Worker's, or that of this machine. */
function inspectClocks({ now, database }: Answer<"getDeployment">): Finding {
  const seconds = Math.abs(Date.parse(now) - Date.parse(database.now)) / 1000;
  const level = seconds <= clockToleranceSeconds ? "ok" : "wrong";
  return { check: "time", level, found: `the clocks differ by ${age(seconds)} at most` };
}

function inspectTransaction({ database: { oldest_transaction: oldest } }: Answer<"getDeployment">): Finding {
  const check = "oldest transaction";
  if (!oldest) return { check, level: "ok", found: "none keeps dead rows" };
  const level = oldest.seconds > oldTransactionSeconds ? "wrong" : "ok";
  return { check, level, found: `a ${oldest.source} keeps dead rows for ${age(oldest.seconds)}` };
}
