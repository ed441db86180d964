// A fingerprint of every table, to show that a refused request has changed nothing. When a key was last used is left out:
// a refused request uses it too.
import type { Deployment } from "../worker/deployment.ts";

export async function fingerprintOf({ query }: Deployment): Promise<Record<string, string>> {
  const tables = await query<{ name: string }>(
    "select relname as name from pg_class where relnamespace = 'sluice'::regnamespace and relkind = 'r'",
  );
  const parts = tables.map(
    ({ name }) => `select '${name}' as name, md5(coalesce(string_agg(row, '' order by row), '')) as hash
      from (select (to_jsonb(t) - 'last_used_at')::text as row from sluice.${name} as t) as rows`,
  );
  const rows = await query<{ name: string; hash: string }>(parts.join(" union all "));
  return Object.fromEntries(rows.map(({ name, hash }) => [name, hash]));
}
