// add key, revoke key, find key, list keys. See migrations/functions/keys.sql.
import { sql } from "drizzle-orm";
import type { ApiKey, NewKey, Role } from "../key.ts";
import { many, one, optional, type Row, type Statement, time, timeOf, timeOrNull } from "./statement.ts";

const columns = sql`id, name, role, job_types, rate_limit_per_second, ${time("created_at")},
      ${time("revoked_at")}, ${time("last_used_at")}`;

/** `keyHash` is the SHA-256 of the whole key in hex. */
export function addKey(actor: string, key: NewKey & { keyHash: string }): Statement<ApiKey> {
  return {
    name: "add key",
    isRepeatable: false, // the hash exists the second time, and hashes are unique
    build: (schema) => sql`
      select ${columns}
      from ${schema}.add_key(
        ${actor}::text,
        ${key.name}::text,
        ${key.role}::text,
        decode(${key.keyHash}::text, 'hex'),
        ${key.jobTypes === null ? null : sql.param(key.jobTypes)}::text[],
        ${key.rateLimitPerSecond}::int
      )`,
    decode: one(decodeKey),
  };
}

/** Answers undefined if there is no such key. */
export function revokeKey(actor: string, id: string): Statement<ApiKey | undefined> {
  return {
    name: "revoke key",
    isRepeatable: true,
    build: (schema) => sql`select ${columns} from ${schema}.revoke_key(${actor}::text, ${id}::uuid)`,
    decode: optional(decodeKey),
  };
}

/** Answers undefined if the key is unknown or revoked. */
export function findKey(keyHash: string): Statement<ApiKey | undefined> {
  return {
    name: "find key",
    isRepeatable: true,
    build: (schema) => sql`select ${columns} from ${schema}.find_key(decode(${keyHash}::text, 'hex'))`,
    decode: optional(decodeKey),
  };
}

export function listKeys({ limit }: { limit: number }): Statement<ApiKey[]> {
  return {
    name: "list keys",
    isRepeatable: true,
    build: (schema) => sql`select ${columns} from ${schema}.list_keys(${limit}::int)`,
    decode: many(decodeKey),
  };
}

function decodeKey(row: Row): ApiKey {
  return {
    id: row.id as string,
    name: row.name as string,
    role: row.role as Role,
    jobTypes: row.job_types as string[] | null,
    rateLimitPerSecond: Number(row.rate_limit_per_second),
    createdAt: timeOf(row.created_at),
    revokedAt: timeOrNull(row.revoked_at),
    lastUsedAt: timeOrNull(row.last_used_at),
  };
}
