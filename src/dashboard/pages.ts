// Every page of the dashboard. Routes are made from this table, and a test walks it.
import type { Page } from "./page.ts";
import { alarmHistory, deliveries } from "./pages/alarm-lists.tsx";
import { alarms } from "./pages/alarms.tsx";
import { audit } from "./pages/audit.tsx";
import { deadLetterJobs } from "./pages/dead-letter-jobs.tsx";
import { deadLetterRun, deadLetterRuns } from "./pages/dead-letter-runs.tsx";
import { deadLetters, startRun } from "./pages/dead-letters.tsx";
import { flow } from "./pages/flow.tsx";
import { flows } from "./pages/flows.tsx";
import { job } from "./pages/job.tsx";
import { jobs } from "./pages/jobs.tsx";
import { keys } from "./pages/keys.tsx";
import { overview } from "./pages/overview.tsx";
import { queue } from "./pages/queue.tsx";
import { queues } from "./pages/queues.tsx";
import { schedules } from "./pages/schedules.tsx";
import { type } from "./pages/type.tsx";
import { types } from "./pages/types.tsx";
import { workers } from "./pages/workers.tsx";

export const pages: readonly Page[] = [
  ...[overview, jobs, job, deadLetters, flows, flow, types, queues, queue, schedules],
  ...[deadLetterJobs, startRun, deadLetterRuns, deadLetterRun],
  ...[alarmHistory, deliveries, type],
  ...[alarms, workers, keys, audit],
];
