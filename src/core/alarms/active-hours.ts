// The hours in which a rule is checked, in the local time of a time zone.

export const weekdays = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
export type Weekday = (typeof weekdays)[number];

export interface ActiveHours {
  /** Such as "08:00". If `from` is later than `to`, the hours pass midnight. */
  from: string;
  /** Exclusive; "24:00" is the end of the day. */
  to: string;
  timeZone: string;
  /** The days on which the hours begin. */
  days: readonly Weekday[];
}

export function isActive(hours: ActiveHours | null, at: Date): boolean {
  if (!hours) return true;
  const { time, day } = toLocalTime(at, hours.timeZone);
  const isActiveDay = (weekday: Weekday | undefined) => weekday !== undefined && hours.days.includes(weekday);
  if (hours.from <= hours.to) return isActiveDay(day) && time >= hours.from && time < hours.to;
  if (time >= hours.from) return isActiveDay(day);
  return time < hours.to && isActiveDay(dayBefore(day));
}

function toLocalTime(at: Date, timeZone: string): { time: string; day: Weekday | undefined } {
  const parts = new Intl.DateTimeFormat("en-GB", {
    timeZone,
    weekday: "short",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  }).formatToParts(at);
  const part = (type: string) => parts.find((one) => one.type === type)?.value ?? "";
  const day = weekdays.find((weekday) => weekday === part("weekday").toLowerCase());
  return { time: `${part("hour")}:${part("minute")}`, day };
}

function dayBefore(day: Weekday | undefined): Weekday | undefined {
  return day && weekdays.at(weekdays.indexOf(day) - 1);
}
