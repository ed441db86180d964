// SLUICE_ACCESS_…: Cloudflare Access as the second way into the dashboard. All three are set, or none.
import * as z from "zod";
import { jsonSetting } from "./json-setting.ts";

export interface AccessSettings {
  /** The issuer of its tokens: https://<team>.cloudflareaccess.com */
  teamUrl: string;
  /** The audience tag of the Access application. */
  audience: string;
  /** By e-mail, or by `*@domain` for everybody of a domain. */
  roles: ReadonlyMap<string, "viewer" | "admin">;
}

/** A public key of the team. */
export interface AccessKey {
  kid: string;
  kty: "RSA";
  n: string;
  e: string;
}

export const accessSettings = {
  SLUICE_ACCESS_TEAM_DOMAIN: z
    .string()
    .transform((domain) => (domain.includes("://") ? domain : `https://${domain}`).replace(/\/+$/, ""))
    .pipe(z.url({ protocol: /^https?$/, error: "must be the team's domain: <team>.cloudflareaccess.com" }))
    .optional(),
  SLUICE_ACCESS_AUDIENCE: z.string().min(1, "must be the audience tag of the application").optional(),
  SLUICE_ACCESS_ROLES: jsonSetting(
    z.record(
      z.string().regex(/^[^@\s]+@[^@\s]+$/, "must be an e-mail address or *@domain"),
      z.enum(["viewer", "admin"], 'must be "viewer" or "admin"'),
    ),
  ).optional(),
};

const names = Object.keys(accessSettings) as (keyof typeof accessSettings)[];
type Parsed = { [Name in keyof typeof accessSettings]?: z.output<(typeof accessSettings)[Name]> };

/** The names of those that are missing beside others. */
export function missingAccess(parsed: Parsed): string[] {
  const missing = names.filter((name) => parsed[name] === undefined);
  return missing.length === names.length ? [] : missing;
}

export function toAccess(parsed: Parsed): AccessSettings | undefined {
  const {
    SLUICE_ACCESS_TEAM_DOMAIN: teamUrl,
    SLUICE_ACCESS_AUDIENCE: audience,
    SLUICE_ACCESS_ROLES: roles,
  } = parsed;
  if (!teamUrl || !audience || !roles) return undefined;
  const byEmail = Object.entries(roles).map(([email, role]) => [email.toLowerCase(), role] as const);
  return { teamUrl, audience, roles: new Map(byEmail) };
}
