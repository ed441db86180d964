// deliver: sends the notices that are due to their targets. A delivery that fails is tried again in later rounds with the
// same id, after ever longer waits. A target that answered 410 gets nothing until its URL changes or a test notice succeeds.
import type { NoticeBody } from "../../core/alarms/notice.ts";
import { backoffSeconds } from "../../core/policy/backoff.ts";
import type { ClaimedDelivery, DeliveryResult } from "../../core/sql/deliver.ts";
import { claimDeliveries, pruneDeliveries, settleDeliveries } from "../../core/sql/index.ts";
import type { Ports, Sender } from "../ports.ts";
import { type KeyedTarget, type NoticeResult, notify } from "./notify.ts";

export interface DeliverOptions {
  targets: readonly KeyedTarget[];
  sender: Sender;
  /** The most deliveries in one pass. Each is a subrequest. */
  batch: number;
}

/** Notices about one alarm are sent in order, each in a pass of its own. */
const maxPasses = 3;
/** Longer than a pass takes: a few groups of targets, and each group ends with the first time-out of its targets. */
const leaseSeconds = 120;
/** An invocation may have six connections. The others are left for the database. */
const targetsAtOnce = 4;
const backoff = { baseSeconds: 5, maxSeconds: 900, jitterSeconds: 5 };
const giveUpDays = 3;
const keepDays = 30;
const pruneLimit = 1000;

export async function deliver(ports: Ports, options: DeliverOptions): Promise<{ sent: number }> {
  const { targets, batch } = options;
  await ports.db.run(pruneDeliveries({ giveUpDays, keepDays, limit: pruneLimit }));
  let sent = 0;
  for (let pass = 0; pass < maxPasses && targets.length > 0; pass++) {
    const claimed = await ports.db.run(claimDeliveries({ targets, limit: batch, leaseSeconds }));
    if (claimed.length === 0) break;
    const results = await sendAll(ports, claimed, options);
    await ports.db.run(settleDeliveries(results));
    sent += results.filter(({ outcome }) => outcome === "delivered").length;
    for (const { target, outcome, error } of results)
      if (outcome !== "delivered") ports.log.error("notice not delivered", { target, outcome, error });
  }
  return { sent };
}

async function sendAll(
  ports: Ports,
  claimed: readonly ClaimedDelivery[],
  { targets, sender }: DeliverOptions,
): Promise<DeliveryResult[]> {
  const results: DeliveryResult[] = [];
  for (let turn = 0; turn < targets.length; turn += targetsAtOnce) {
    const groupResults = targets.slice(turn, turn + targetsAtOnce).map((target) =>
      sendInTurn(ports, target, {
        sender,
        deliveries: claimed.filter((delivery) => delivery.target === target.name),
      }),
    );
    results.push(...(await Promise.all(groupResults)).flat());
  }
  return results;
}

/** Sends one after the other. A target that is downResult gets no further requests in this pass: the rest share its result. */
async function sendInTurn(
  ports: Ports,
  target: KeyedTarget,
  { deliveries, sender }: { deliveries: readonly ClaimedDelivery[]; sender: Sender },
): Promise<DeliveryResult[]> {
  const results: DeliveryResult[] = [];
  let downResult: NoticeResult | undefined;
  for (const { id, notice, tries } of deliveries) {
    const result =
      downResult ?? (await notify(ports, target, { id, notice: notice as unknown as NoticeBody, sender }));
    if (isDown(result)) downResult = result;
    results.push(deliveryResult(ports, target, { id, tries, result }));
  }
  return results;
}

function isDown({ outcome, status }: NoticeResult): boolean {
  return outcome === "gone" || (outcome === "retry" && (status === null || status >= 500 || status === 429));
}

function deliveryResult(
  ports: Ports,
  target: KeyedTarget,
  { id, tries, result }: { id: string; tries: number; result: NoticeResult },
): DeliveryResult {
  const { outcome, status, error, retryInSeconds } = result;
  const wait = retryInSeconds ?? backoffSeconds(backoff, { attempt: tries, random: ports.random() });
  return {
    delivery: { id, tries },
    target: target.name,
    urlHash: target.urlHash,
    outcome,
    status,
    error,
    retryInSeconds: outcome === "retry" ? wait : null,
  };
}
