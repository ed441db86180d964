// A request as test/support/receiver.ts returns it. Tests in workerd read it too, so it must not use Node's types.

export interface ReceivedRequest {
  method: string;
  path: string;
  headers: Record<string, string | string[] | undefined>;
  body: string;
  /** The signature that the secret in the query gives. */
  expectedSignature: string;
}
