// How numbers and times are written: with thousands separators and a unit.

const counts = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });

export function count(value: number): string {
  return counts.format(value);
}

/** "1 job", "2 jobs". */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** "none paused", "2 paused". */
export function pausedText(paused: number): string {
  return `${paused === 0 ? "none" : count(paused)} paused`;
}

const units = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
] as const;
/** From ten of a unit on, the next smaller one says nothing more. */
const fromTenOn = 10;

/** "212 ms", "1.9 s", "4 s", "1 min 53 s", "12 min", "1 h 27 min", "3 d 4 h". */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000 && ms % 1000 !== 0) return `${(ms / 1000).toFixed(1)} s`;
  return wholeSeconds(Math.floor(ms / 1000));
}

/** The same without parts of a second, for times that people wait for. */
export function wholeSeconds(seconds: number): string {
  const at = units.findIndex(([, size]) => seconds >= size);
  const [unit, size] = units[at] ?? ["s", 1];
  const number = Math.floor(seconds / size);
  const [smaller, smallerSize] = units[at + 1] ?? ["", 0];
  const rest = smallerSize > 0 ? Math.floor((seconds % size) / smallerSize) : 0;
  return number >= fromTenOn || rest === 0 ? `${number} ${unit}` : `${number} ${unit} ${rest} ${smaller}`;
}

/** "258 bytes", "12.4 KiB": of the text as UTF-8. */
export function bytesText(text: string): string {
  const bytes = new TextEncoder().encode(text).length;
  return bytes < 1024 ? counted(bytes, "byte") : `${count(bytes / 1024)} KiB`;
}

/** "2026-11-16 14:32:07 UTC". */
export function absolute(at: Date): string {
  return `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** "14:32:07.216", for timelines. */
export function clockTime(at: Date): string {
  return at.toISOString().slice(11, 23);
}

/** "14:32", for the axes of charts. */
export function minuteTime(at: Date): string {
  return at.toISOString().slice(11, 16);
}
