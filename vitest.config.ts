// One Postgres for the whole run (test/support/global-setup.ts), four kinds of test: pure, on Postgres, in
// workerd, and the local stack as a user starts it.
import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    globalSetup: ["test/support/global-setup.ts"],
    silent: "passed-only",
    projects: [
      { test: { name: "unit", include: ["test/unit/**/*.test.ts"] } },
      {
        test: {
          name: "postgres",
          include: ["test/{sql,queue,model,faults,client,bench}/**/*.test.ts"],
          exclude: ["**/*.long.test.ts"],
          testTimeout: 120_000,
        },
      },
      {
        plugins: [
          cloudflareTest(({ inject }) => ({
            wrangler: { configPath: "./wrangler.toml" },
            miniflare: {
              cf: false,
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
        test: { name: "worker", include: ["test/worker/**/*.test.ts"] },
      },
      {
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          fileParallelism: false,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
