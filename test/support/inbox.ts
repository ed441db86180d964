// An inbox at the receiver (receiver.ts): a URL of its own, what came there, and how it answers from now on.
import type { ReceivedRequest } from "./received-request.ts";

export interface Inbox {
  url: string;
  /** 0: it never answers. */
  answer(status: number, options?: { retryAfter?: number }): Promise<void>;
  /** With the signature that each would have under the secret. */
  requests(secret?: string): Promise<ReceivedRequest[]>;
}

export function openInbox(receiverUrl: string, name: string): Inbox {
  const unique = `${name}-${crypto.randomUUID()}`;
  return {
    url: `${receiverUrl}/inbox/${unique}`,
    async answer(status, { retryAfter } = {}) {
      const wait = retryAfter === undefined ? "" : `&retry-after=${retryAfter}`;
      await fetch(`${receiverUrl}/switch/${unique}?status=${status}${wait}`);
    },
    async requests(secret = "") {
      const query = `?secret=${encodeURIComponent(secret)}`;
      return (await fetch(`${receiverUrl}/requests/${unique}${query}`)).json();
    },
  };
}
