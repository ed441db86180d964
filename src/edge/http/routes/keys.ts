// Routes for API keys: list, add, revoke.
import * as z from "zod";
import type { KeyResponse, NewKeyResponse } from "../../../contract/admin.ts";
import { SluiceError } from "../../../core/errors.ts";
import type { ApiKey } from "../../../core/key.ts";
import * as sql from "../../../core/sql/index.ts";
import { digestKey, newKey, toHex } from "../guards/api-key.ts";
import { forgetKey } from "../guards/key-cache.ts";
import type { Handlers } from "../operation-routes.ts";

const maxListed = 1000;

export const listKeys: Handlers["listKeys"] = async (context) => {
  const keys = await context.env.ports.db.run(sql.listKeys({ limit: maxListed }));
  return context.json({ keys: keys.map(toKeyResponse) });
};

export const addKey: Handlers["addKey"] = async (context, { body: request }) => {
  const key = newKey();
  const added = await context.env.ports.db.run(
    sql.addKey(context.get("caller").actor, {
      name: request.name,
      role: request.role,
      jobTypes: request.job_types,
      rateLimitPerSecond: request.rate_limit_per_second,
      keyHash: toHex(await digestKey(key)),
    }),
  );
  const body: NewKeyResponse = { ...toKeyResponse(added), key };
  return context.json(body, 201, { "cache-control": "no-store" });
};

export const revokeKey: Handlers["revokeKey"] = async (context) => {
  const idText = context.req.param("id");
  const id = z.uuid().safeParse(idText);
  const revoked = id.success
    ? await context.env.ports.db.run(sql.revokeKey(context.get("caller").actor, id.data))
    : undefined;
  if (!revoked) throw new SluiceError("not_found", `there is no key ${idText}`);
  forgetKey(context.env.isolate, revoked.id);
  return context.json(toKeyResponse(revoked));
};

function toKeyResponse(key: ApiKey): KeyResponse {
  return {
    id: key.id,
    name: key.name,
    role: key.role,
    job_types: key.jobTypes === null ? null : [...key.jobTypes],
    rate_limit_per_second: key.rateLimitPerSecond,
    created_at: key.createdAt.toISOString(),
    revoked_at: key.revokedAt?.toISOString() ?? null,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
  };
}
