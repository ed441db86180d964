// Formats a number for people, with about three digits.

export function numberText(value: number): string {
  return value.toLocaleString("en", {
    maximumFractionDigits: value < 1 ? 3 : value < 10 ? 2 : value < 100 ? 1 : 0,
  });
}
