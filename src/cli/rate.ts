// A rate as people write it: 100/m, 5/s, 2000/h.
import { usageError } from "./exit.ts";

const perMinute: Record<string, number> = { s: 60, m: 1, h: 1 / 60 };

export function parseRate(text: string): number {
  const [, number = "", unit = ""] = /^(\d+)\/(s|m|h)[a-z]*$/.exec(text) ?? [];
  const rate = Number(number) * (perMinute[unit] ?? 0);
  if (rate === 0) throw usageError(`--rate: "${text}" is not a rate such as 100/m, 5/s or 2000/h`);
  if (rate < 1) throw usageError(`--rate: ${text} is less than one job a minute`);
  return Math.floor(rate);
}
