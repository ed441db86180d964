// What may be taken from the answer of somebody else's endpoint: so much of its text, and when it wants to be asked again.

const maxRetrySeconds = 86_400;

/** An endpoint may answer without end: what is past the limit is not read. */
export async function readAtMost(response: Response, bytes: number): Promise<string> {
  const reader = response.body?.getReader();
  if (!reader) return "";
  const decoder = new TextDecoder();
  let text = "";
  for (let read = 0; read < bytes; ) {
    const { done, value } = await reader.read();
    if (done) break;
    read += value.byteLength;
    text += decoder.decode(value, { stream: true });
  }
  await reader.cancel();
  return text.slice(0, bytes);
}

/** Seconds, or a date. */
export function retryAfterSeconds(header: string | null, nowMs: number): number | undefined {
  if (!header) return undefined;
  const seconds = /^\d+$/.test(header.trim()) ? Number(header) : (Date.parse(header) - nowMs) / 1000;
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0), maxRetrySeconds) : undefined;
}
