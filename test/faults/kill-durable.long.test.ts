// A Worker is killed in the middle of durable handlers: no stored step runs again, and every job ends.
import { test } from "vitest";
import { killDurableJobs } from "../support/kill-durable.ts";
import { useTestDatabase } from "../support/test-database.ts";

const db = useTestDatabase();
const kills = 200;

test(`${kills} kills: no stored step runs twice, and every job completes`, { timeout: 15 * 60_000 }, () =>
  killDurableJobs(db, { kills, jobsPerKill: 10 }),
);
