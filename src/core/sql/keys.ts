// add key, revoke key, find key, list keys. See migrations/functions/keys.sql.
import type { ApiKey, NewKey } from "../key.ts";
import { decodeColumns, listColumns } from "./columns.ts";
import { apiKey } from "./schema.ts";
import { sql } from "./sql.ts";
import { many, one, optional, type Statement } from "./statement.ts";

const decodeKey = decodeColumns(apiKey);

/** `keyHash` is the SHA-256 of the whole key in hex. */
export function addKey(actor: string, key: NewKey & { keyHash: string }): Statement<ApiKey> {
  return {
    name: "add key",
    isRepeatable: false, // the hash exists the second time, and hashes are unique
    build: (schema) => sql`
      select ${listColumns(apiKey)}
      from ${schema}.add_key(
        ${actor}::text,
        ${key.name}::text,
        ${key.role}::text,
        decode(${key.keyHash}::text, 'hex'),
        ${key.jobTypes === null ? null : key.jobTypes}::text[],
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
    build: (schema) =>
      sql`select ${listColumns(apiKey)} from ${schema}.revoke_key(${actor}::text, ${id}::uuid)`,
    decode: optional(decodeKey),
  };
}

/** Answers undefined if the key is unknown or revoked. */
export function findKey(keyHash: string): Statement<ApiKey | undefined> {
  return {
    name: "find key",
    isRepeatable: true,
    build: (schema) =>
      sql`select ${listColumns(apiKey)} from ${schema}.find_key(decode(${keyHash}::text, 'hex'))`,
    decode: optional(decodeKey),
  };
}

/** Newest first, with revoked keys at the end. */
export function listKeys({ limit }: { limit: number }): Statement<ApiKey[]> {
  return {
    name: "list keys",
    isRepeatable: true,
    build: (schema) => sql`
      select ${listColumns(apiKey)}
      from ${schema}.api_key
      order by revoked_at is not null, id desc
      limit ${limit}::int`,
    decode: many(decodeKey),
  };
}
