// The watch round: takes a snapshot, updates the alarms, enqueues a canary, and delivers notices. A step that fails does
// not stop the others; the round fails at its end.
import { type AlarmRule, canary } from "../core/alarms/alarm.ts";
import { listWindows } from "../core/alarms/alarm-rules.ts";
import type { Deployment } from "../core/alarms/notice.ts";
import type { Plan } from "../core/policy/drain-budget.ts";
import type { Snapshot } from "../core/snapshot.ts";
import { readAlarms, snapshot } from "../core/sql/index.ts";
import { deliver } from "./alarms/deliver.ts";
import type { KeyedTarget } from "./alarms/notify.ts";
import { updateAlarms } from "./alarms/update-alarms.ts";
import { enqueue } from "./enqueue.ts";
import type { Ports, Sender } from "./ports.ts";
import { runSteps, type StepReports } from "./rounds.ts";

export interface WatchOptions {
  rules: readonly AlarmRule[];
  targets: readonly KeyedTarget[];
  sender: Sender;
  deployment: Deployment;
  plan: Plan;
  /** How long ago the database was last left alone on purpose. Null: never. */
  sleptMsAgo?: number | null;
}

/** Three passes of this many deliveries, and the statements of the round or of a visit, fit into the plan's subrequests. */
export const deliveriesAtOnce = { free: 8, paid: 50 } satisfies Record<Plan, number>;
/** One late canary must not stop the next ones. Without drains, no more than this many may pile up. */
const maxCanaries = 3;

export async function watch(ports: Ports, options: WatchOptions): Promise<{ steps: StepReports }> {
  const { rules, targets, sender, deployment, plan, sleptMsAgo = null } = options;
  const windows = listWindows(rules);
  const reads = Promise.all([ports.db.run(snapshot({ windows })), ports.db.run(readAlarms())]);
  return runSteps(ports, "watch", {
    alarms: async () => {
      const [current, storedAlarms] = await reads;
      await updateAlarms(ports, { snapshot: current, storedAlarms, rules, targets, deployment, sleptMsAgo });
    },
    canary: async () => sendCanary(ports, (await reads)[0], rules),
    deliver: () => deliver(ports, { targets, sender, batch: deliveriesAtOnce[plan] }),
  });
}

async function sendCanary(ports: Ports, { groups }: Snapshot, rules: readonly AlarmRule[]): Promise<void> {
  const isWatched = rules.some(({ isEnabled, jobType }) => isEnabled && jobType === canary.type);
  const waiting = groups
    .filter(({ queue: name, type }) => name === canary.queue && type === canary.type)
    .reduce((sum, { pending, leased }) => sum + pending + leased, 0);
  if (isWatched && waiting < maxCanaries) await enqueue(ports, { ...canary, payload: {} });
}
