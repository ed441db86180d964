// Every page of the dashboard. Routes are made from this table, and a test walks it.
import type { Page } from "./page.ts";
import { alarms } from "./pages/alarms.tsx";
import { audit } from "./pages/audit.tsx";
import { deadLetters } from "./pages/dead-letters.tsx";
import { flow } from "./pages/flow.tsx";
import { flows } from "./pages/flows.tsx";
import { job } from "./pages/job.tsx";
import { jobs } from "./pages/jobs.tsx";
import { keys } from "./pages/keys.tsx";
import { overview } from "./pages/overview.tsx";
import { queue } from "./pages/queue.tsx";
import { queues } from "./pages/queues.tsx";
import { schedules } from "./pages/schedules.tsx";
import { types } from "./pages/types.tsx";
import { workers } from "./pages/workers.tsx";

export const pages: readonly Page[] = [
  ...[overview, jobs, job, deadLetters, flows, flow, types, queues, queue, schedules],
  ...[alarms, workers, keys, audit],
];
