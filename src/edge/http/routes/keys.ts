// The API keys: list, add, revoke.
import * as z from "zod";
import type { KeyResponse, NewKeyResponse } from "../../../contract/admin.ts";
import { SluiceError } from "../../../core/errors.ts";
import type { ApiKey } from "../../../core/key.ts";
import * as sql from "../../../core/sql/index.ts";
import { digestOf, hexOf, newKey } from "../guards/api-key.ts";
import { forgetKey } from "../guards/key-cache.ts";
import type { Handlers } from "../operation-routes.ts";

const maxListed = 1000;

export const listKeys: Handlers["listKeys"] = async (context) => {
  const found = await context.env.ports.db.run(sql.listKeys({ limit: maxListed }));
  return context.json({ keys: found.map(keyResponseOf) });
};

export const addKey: Handlers["addKey"] = async (context, { body: request }) => {
  const key = newKey();
  const added = await context.env.ports.db.run(
    sql.addKey(context.get("caller").actor, {
      name: request.name,
      role: request.role,
      jobTypes: request.job_types,
      rateLimitPerSecond: request.rate_limit_per_second,
      keyHash: hexOf(await digestOf(key)),
    }),
  );
  const body: NewKeyResponse = { ...keyResponseOf(added), key };
  return context.json(body, 201, { "cache-control": "no-store" });
};

export const revokeKey: Handlers["revokeKey"] = async (context) => {
  const given = context.req.param("id");
  const id = z.uuid().safeParse(given);
  const revoked = id.success
    ? await context.env.ports.db.run(sql.revokeKey(context.get("caller").actor, id.data))
    : undefined;
  if (!revoked) throw new SluiceError("not_found", `there is no key ${given}`);
  forgetKey(context.env.isolate, revoked.id);
  return context.json(keyResponseOf(revoked));
};

function keyResponseOf(key: ApiKey): KeyResponse {
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
