// Signs the calls by which a cron round starts drains through the binding SELF, and checks them. The signature is made with
// the admin key, for one queue and one time. The key itself is not sent: if SELF points to another Worker by mistake, that
// Worker must not learn the key. It cannot check the signature, so it refuses the call. The clock calls in the same way.
//
// While the admin key is rotated, some isolates have old settings and some have new ones. So the sender signs with each of
// its admin keys, and the receiver checks with each of its own.
import type { DrainReport } from "../queue/drain/drain.ts";
import type { WakeReport } from "../queue/wake.ts";
import { isSignedBy, signWith } from "./own-signature.ts";
import type { SelfBinding } from "./settings/env.ts";

const scheme = "Drain";
/** Is signed in place of a queue, and no queue has such a name. */
export const wakeName = "(wake)";
/** The clocks of two machines differ. Within this time a call can be repeated, which only starts one more drain. */
const maxAgeMs = 60_000;

export async function signDrain(
  adminKeys: readonly string[],
  call: { queue: string; nowMs: number },
): Promise<string> {
  const at = String(call.nowMs);
  const message = toMessage(call.queue, at);
  const signatures = await Promise.all(adminKeys.map((key) => signWith(key, message)));
  return [scheme, at, ...signatures].join(" ");
}

interface Caller {
  self: SelfBinding;
  adminKeys: readonly string[];
  nowMs: number;
}

/** One drain in an invocation of its own. Resolves at its end. */
export function callDrain(caller: Caller, queue: string): Promise<DrainReport> {
  return callSelf(caller, { path: `drains/${queue}`, queue, what: `the drain of queue "${queue}"` });
}

/** A look at the database. */
export function callWake(caller: Caller, { upkeep }: { upkeep: boolean }): Promise<WakeReport> {
  return callSelf(caller, {
    path: `wake?upkeep=${upkeep}`,
    queue: wakeName,
    what: "the look at the database",
  });
}

async function callSelf<T>(
  { self, adminKeys, nowMs }: Caller,
  { path, queue, what }: { path: string; queue: string; what: string },
): Promise<T> {
  const authorization = await signDrain(adminKeys, { queue, nowMs });
  const init = { method: "POST", headers: { authorization } };
  const response = await self.fetch(`https://sluice.internal/internal/${path}`, init);
  if (!response.ok) throw new Error(`${what} answered ${response.status}: ${await response.text()}`);
  return response.json() as Promise<T>;
}

export async function isSignedDrain(
  adminKeys: readonly string[],
  call: { queue: string; nowMs: number; authorization: string },
): Promise<boolean> {
  const [callScheme, at = "", ...signatures] = call.authorization.split(" ");
  if (callScheme !== scheme || !(Math.abs(call.nowMs - Number(at)) <= maxAgeMs)) return false;
  const message = toMessage(call.queue, at);
  for (const signature of signatures.slice(0, 2))
    if (await isSignedBy(adminKeys, { message, signature })) return true;
  return false;
}

function toMessage(queue: string, at: string): string {
  return `sluice drain\n${queue}\n${at}`;
}
