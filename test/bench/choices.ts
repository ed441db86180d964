// All workloads and all systems.
import { graphileWorker } from "./systems/graphile-worker.ts";
import { pgBoss } from "./systems/pg-boss.ts";
import { pgmq } from "./systems/pgmq.ts";
import { sluice } from "./systems/sluice.ts";
import type { System } from "./systems/system.ts";
import { backlog } from "./workloads/backlog.ts";
import { calls } from "./workloads/calls.ts";
import { clock } from "./workloads/clock.ts";
import { drain } from "./workloads/drain.ts";
import { enqueue } from "./workloads/enqueue.ts";
import { http } from "./workloads/http.ts";
import { keys } from "./workloads/keys.ts";
import { mixed } from "./workloads/mixed.ts";
import { pin } from "./workloads/pin.ts";
import { ratesWorkload } from "./workloads/rates.ts";
import { readers } from "./workloads/readers.ts";
import { retries } from "./workloads/retries.ts";
import { schedulesWorkload } from "./workloads/schedules.ts";
import { shares } from "./workloads/shares.ts";
import { spike } from "./workloads/spike.ts";
import { wal } from "./workloads/wal.ts";
import type { Workload } from "./workloads/workload.ts";

export const workloads: readonly Workload[] = [
  enqueue,
  drain,
  retries,
  mixed,
  spike,
  backlog,
  readers,
  wal,
  http,
  pin,
  keys,
  shares,
  calls,
  clock,
  ratesWorkload,
  schedulesWorkload,
];

/** Functions, because a peer reads its version from its package, which may not be installed yet. */
export const systems: Readonly<Record<string, () => System>> = {
  sluice: () => sluice,
  "pg-boss": pgBoss,
  "graphile-worker": graphileWorker,
  pgmq,
};
