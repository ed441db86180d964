// One Postgres for the whole run (test/support/global-setup.ts), and five kinds of test: pure, on Postgres, in workerd, the
// local stack as a user starts it, and upgrades. Files that keep no state between them share their modules.
import { availableParallelism } from "node:os";
import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";
import { bundledPg } from "./test/support/pg-bundle.ts";

/** Postgres does half of the work, so a core less than there are, as is the default, would leave one idle. */
const maxWorkers = Math.min(availableParallelism(), 4);

export default defineConfig({
  test: {
    maxWorkers,
    globalSetup: ["test/support/global-setup.ts"],
    provide: { isInMemory: true },
    silent: "passed-only",
    // On a busy machine a condition that comes true may take long. The default is a second.
    expect: { poll: { timeout: 10_000 } },
    projects: [
      {
        // Laws over many cases and bundles take seconds, and more on a busy machine.
        test: {
          name: "unit",
          setupFiles: ["test/support/same-cases.ts"],
          include: ["test/{unit,openapi}/*.test.ts"],
          isolate: false,
          testTimeout: 60_000,
        },
      },
      {
        test: {
          name: "postgres",
          setupFiles: ["test/support/same-cases.ts"],
          include: [
            "test/{docs,sql,database,queue,model,faults,client,puller,cli,bench,simulate}/**/*.test.ts",
          ],
          exclude: ["**/*.long.test.ts", "**/node_modules/**"],
          isolate: false,
          testTimeout: 120_000,
        },
      },
      {
        plugins: [
          bundledPg,
          cloudflareTest(({ inject }) => ({
            wrangler: { configPath: "./wrangler.toml" },
            miniflare: {
              cf: false,
              // Beside that of wrangler.toml, whose number is more than a test can send.
              ratelimits: { TIGHT_RATE_LIMITER: { namespace_id: "1", simple: { limit: 3, period: 10 } } },
              bindings: {
                DATABASE_URL: inject("workerDatabaseUrl"),
                SLUICE_NEON_ENDPOINT: inject("neonEndpoint"),
                SLUICE_ADMIN_KEY: "sk_the_key_of_the_worker_tests",
                SLUICE_ALLOW_PRIVATE_TARGETS: "true",
                RECEIVER_URL: inject("receiverUrl"),
              },
            },
          })),
        ],
        test: {
          name: "worker",
          setupFiles: ["test/support/same-cases.ts"],
          include: ["test/{worker,dashboard}/**/*.test.ts"],
          // The Worker's modules are loaded once for each workerd, and not for each file: that took two seconds a file.
          isolate: false,
          testTimeout: 30_000,
        },
      },
      {
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          exclude: ["**/*.long.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        // It measures how long calls wait for a migration, so it runs when all others have ended.
        test: {
          name: "upgrade",
          include: ["test/upgrade/*.test.ts"],
          testTimeout: 120_000,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
