// GET /v1/admin/deployment: the settings in effect, the bindings, and the state of the database.
import type { DeploymentResponse } from "../../../contract/deployment.ts";
import { version } from "../../../contract/version.ts";
import { schemaVersion } from "../../../core/schema-version.ts";
import { requireSchemaVersion, snapshot } from "../../../core/sql/index.ts";
import type { Settings } from "../../settings/env.ts";
import type { Handlers } from "../operation-routes.ts";

export const getDeployment: Handlers["getDeployment"] = async (context) => {
  const { ports, settings } = context.env;
  const found = await ports.db.run(requireSchemaVersion());
  const { at, oldestTransaction } = await ports.db.run(snapshot());
  const { self, rateLimiter, clock, hyperdriveUrl } = settings;
  const body: DeploymentResponse = {
    name: settings.deployment.name,
    version,
    settings: settingsResponse(settings),
    bindings: {
      self: self !== undefined,
      rate_limiter: rateLimiter !== undefined,
      clock: clock !== undefined,
      hyperdrive: hyperdriveUrl !== undefined,
    },
    schema: { name: settings.schema, version: found, needed: schemaVersion },
    database: { now: at.toISOString(), oldest_transaction: oldestTransaction },
    now: new Date(ports.clock.nowMs()).toISOString(),
  };
  return context.json(body);
};

/** Names and numbers only: the URLs of targets and heartbeats hold secrets. */
function settingsResponse(settings: Settings): DeploymentResponse["settings"] {
  return {
    plan: settings.plan,
    max_drains: settings.maxDrains,
    max_depth: settings.maxDepth,
    max_sleep_minutes: settings.maxSleepMinutes,
    alarm_targets: settings.alarmTargets.map(({ name }) => name),
    heartbeats: Object.entries(settings.heartbeatUrls).flatMap(([kind, url]) => (url ? [kind] : [])),
    allow_private_targets: settings.allowPrivateTargets,
  };
}
