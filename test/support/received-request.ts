// What test/support/receiver.ts says of a request it got: read by tests in workerd, which know nothing of Node.

export interface ReceivedRequest {
  method: string;
  path: string;
  headers: Record<string, string | string[] | undefined>;
  body: string;
  /** What a signature under the secret that was asked about would be. */
  expectedSignature: string;
}
