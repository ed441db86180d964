// Reads the answer of an endpoint that is not ours: a limited part of its text, and its Retry-After.

const maxRetrySeconds = 86_400;

/** Reads no further than the limit, since an endpoint may answer without end. */
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

/** The header is a number of seconds or a date. */
export function retryAfterSeconds(header: string | null, nowMs: number): number | undefined {
  if (!header) return undefined;
  const seconds = /^\d+$/.test(header.trim()) ? Number(header) : (Date.parse(header) - nowMs) / 1000;
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0), maxRetrySeconds) : undefined;
}
