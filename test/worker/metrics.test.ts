// /metrics in workerd: what Prometheus scrapes after a job has completed.
import { expect, test } from "vitest";
import * as z from "zod";
import { defineJob } from "../../src/index.ts";
import { parseMetrics } from "../support/prometheus-lint.ts";
import { crons, useDeployment } from "./deployment.ts";

const deployment = useDeployment([defineJob("note", { payload: z.object({}), run: () => {} })]);

test("/metrics answers in the text format with the counts of the queue", async () => {
  await deployment.enqueueMany("note", [{}, {}]);
  for (const cron of Object.values(crons)) await deployment.fire(cron);
  await deployment.enqueueMany("note", [{}], { queue: "other" });
  const response = await deployment.call("/metrics");
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  const { families, faults } = parseMetrics(await response.text());
  expect(faults).toEqual([]);
  const samples = families.flatMap(({ lines }) =>
    lines.map(
      ({ name, labels, value }) => [`${name} ${Object.values(labels).join(" ")}`.trim(), value] as const,
    ),
  );
  expect(new Map(samples)).toEqual(
    new Map([
      ...samples,
      ["sluice_completed_jobs_total default note", 2],
      ["sluice_pending_jobs other note 5", 1],
      ["sluice_job_processing_seconds_count default note", 2],
      ["sluice_job_waiting_seconds_bucket default note +Inf", 2],
      ["sluice_last_round_failed drain", 0],
      ["sluice_breaker_open note", 0],
    ]),
  );
});
