// A key of the API: whose it is and what it may do. The key itself is shown once and kept nowhere.

export const roles = ["producer", "worker", "viewer", "admin"] as const;
export type Role = (typeof roles)[number];

export const defaultRateLimitPerSecond = 1000;

export interface NewKey {
  name: string;
  role: Role;
  /** The types that a producer may enqueue; null: all. */
  jobTypes: readonly string[] | null;
  rateLimitPerSecond: number;
}

export interface ApiKey extends NewKey {
  id: string;
  createdAt: Date;
  revokedAt: Date | null;
  /** To the minute. */
  lastUsedAt: Date | null;
}
