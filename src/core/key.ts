// An API key: its name and what it may do. The key itself is shown once and never stored.

export const roles = ["producer", "worker", "viewer", "admin"] as const;
export type Role = (typeof roles)[number];

export const defaultRateLimitPerSecond = 1000;

export interface NewKey {
  name: string;
  role: Role;
  /** The types that a producer may use. Null means all. */
  jobTypes: readonly string[] | null;
  rateLimitPerSecond: number;
}

export interface ApiKey extends NewKey {
  id: string;
  createdAt: Date;
  revokedAt: Date | null;
  /** Exact to a minute. */
  lastUsedAt: Date | null;
}
