// deliver: takes the notices that are due to their targets. What fails is tried again in later rounds, ever more seldom,
// under the same id. A target that is gone (410) is left alone until its URL changes or a test notice gets through.
import type { NoticeBody } from "../../core/alarms/notice.ts";
import { backoffSeconds } from "../../core/policy/backoff.ts";
import type { ClaimedDelivery, DeliveryResult } from "../../core/sql/deliver.ts";
import { claimDeliveries, pruneDeliveries, settleDeliveries } from "../../core/sql/index.ts";
import type { Ports, Sender } from "../ports.ts";
import { type KeyedTarget, type NoticeResult, notify } from "./notify.ts";

export interface DeliverOptions {
  targets: readonly KeyedTarget[];
  sender: Sender;
  /** At one time: every one is a subrequest. */
  batch: number;
}

/** Notices about one thing go one after the other, each in a pass of its own. */
const maxPasses = 3;
/** Longer than a pass can take: at most three turns of targets, each until its first time-out. */
const leaseSeconds = 120;
/** Of the six connections that an invocation may have. */
const targetsAtOnce = 4;
const backoff = { baseSeconds: 5, maxSeconds: 900, jitterSeconds: 5 };
const giveUpDays = 3;
const keepDays = 30;
const prunedAtOnce = 1000;

export async function deliver(ports: Ports, options: DeliverOptions): Promise<{ sent: number }> {
  const { targets, batch } = options;
  await ports.db.run(pruneDeliveries({ giveUpDays, keepDays, limit: prunedAtOnce }));
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
    const sending = targets.slice(turn, turn + targetsAtOnce).map((target) =>
      sendInTurn(ports, target, {
        sender,
        deliveries: claimed.filter((delivery) => delivery.target === target.name),
      }),
    );
    results.push(...(await Promise.all(sending)).flat());
  }
  return results;
}

/** One after the other. A target that does not answer, or not now, is not asked again in this pass. */
async function sendInTurn(
  ports: Ports,
  target: KeyedTarget,
  { deliveries, sender }: { deliveries: readonly ClaimedDelivery[]; sender: Sender },
): Promise<DeliveryResult[]> {
  const results: DeliveryResult[] = [];
  let down: NoticeResult | undefined;
  for (const { id, notice, tries } of deliveries) {
    const result =
      down ?? (await notify(ports, target, { id, notice: notice as unknown as NoticeBody, sender }));
    if (isDown(result)) down = result;
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
