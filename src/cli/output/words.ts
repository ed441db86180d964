// Values as people read them. Texts of jobs may hold anything, so control characters are shown as escapes: they could move
// the cursor of a terminal, or break a line of a table in two.

export function plain(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (value instanceof Date) return value.toISOString();
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return text.replace(/\p{Cc}/gu, escaped);
}

function escaped(character: string): string {
  const names: Record<string, string> = { "\n": "\\n", "\t": "\\t", "\r": "\\r" };
  return names[character] ?? `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
}

export function firstLine(text: string | null | undefined): string {
  return (text ?? "").split("\n", 1)[0] ?? "";
}

/** 45 s, 12 min, 3 h, 2 d. */
export function age(seconds: number): string {
  if (seconds < 1) return `${Math.max(Math.round(seconds * 1000), 0)} ms`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5_400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} d`;
}

export function ago(time: string | null | undefined, nowMs = Date.now()): string {
  return time ? `${age((nowMs - Date.parse(time)) / 1000)} ago` : "never";
}

export function count(number: number): string {
  return number.toLocaleString("en-US");
}

export function plural(number: number, noun: string): string {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** The time from one instant to another, or nothing if one of them is missing. */
export function between(from: string | null, to: string | null): string {
  return from && to ? age((Date.parse(to) - Date.parse(from)) / 1000) : "";
}
