// An inbox at the receiver (receiver.ts): its URL, the requests it got, and a way to set its next answers.
import type { ReceivedRequest } from "./received-request.ts";

export interface Inbox {
  url: string;
  /** 0 means that it never answers. */
  answer(status: number, options?: { retryAfter?: number }): Promise<void>;
  /** The requests so far, each with the signature that the secret gives. */
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
