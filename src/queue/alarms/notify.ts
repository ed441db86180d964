// Sends one notice to one target in its format. It never throws: a request without an answer is a result too.
import type { NoticeBody } from "../../core/alarms/notice.ts";
import { formatNotice, type TargetFormat } from "../../core/alarms/notice-formats.ts";
import { signWebhook } from "../outgoing/sign-webhook.ts";
import type { Ports, Sender } from "../ports.ts";

export interface AlarmTarget {
  name: string;
  url: string;
  format: TargetFormat;
  /** For the generic format `whsec_…`, two of them while the secret is rotated. For PagerDuty the routing key. */
  secrets: readonly string[];
}

/** A target with the hash of its URL. The database stores the hash only, because the URL may contain a secret. */
export interface KeyedTarget extends AlarmTarget {
  urlHash: string;
}

export interface NoticeResult {
  outcome: "delivered" | "retry" | "gone";
  status: number | null;
  error: string | null;
  /** The wait that the target asked for. */
  retryInSeconds: number | undefined;
}

const timeoutMs = 10_000;
const goneStatus = 410;

export async function notify(
  ports: Ports,
  target: AlarmTarget,
  { id, notice, sender }: { id: string; notice: NoticeBody; sender: Sender },
): Promise<NoticeResult> {
  const body = JSON.stringify(formatNotice(notice, target));
  const timestampSeconds = ports.clock.nowMs() / 1000;
  try {
    const signature =
      target.format === "generic"
        ? await signWebhook({ id, timestampSeconds, body, secrets: target.secrets })
        : {};
    const headers = { ...signature, "content-type": "application/json" };
    const { status, retryInSeconds, errorText } = await sender.send({
      ...{ method: "POST", url: target.url, headers, body, timeoutMs },
    });
    if (status >= 200 && status < 300) {
      return { outcome: "delivered", status, error: null, retryInSeconds: undefined };
    }
    const error = `answered ${status}${errorText ? `: ${errorText}` : ""}`;
    return { outcome: status === goneStatus ? "gone" : "retry", status, error, retryInSeconds };
  } catch (error) {
    return { outcome: "retry", status: null, error: (error as Error).message, retryInSeconds: undefined };
  }
}

export function keyTargets(targets: readonly AlarmTarget[]): Promise<KeyedTarget[]> {
  return Promise.all(
    targets.map(async (target) => {
      const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(target.url));
      const bytes = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0"));
      return { ...target, urlHash: bytes.join("") };
    }),
  );
}
