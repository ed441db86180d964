// The hours in which a rule is watched, by the clock on the wall of a time zone.

export const weekdays = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
export type Weekday = (typeof weekdays)[number];

export interface ActiveHours {
  /** "08:00". From later than to: over midnight. */
  from: string;
  /** Exclusive; "24:00" is the end of the day. */
  to: string;
  timeZone: string;
  /** The day on which the hours begin. */
  days: readonly Weekday[];
}

export function isActive(hours: ActiveHours | null, at: Date): boolean {
  if (!hours) return true;
  const { time, day } = wallClock(at, hours.timeZone);
  const isWanted = (weekday: Weekday | undefined) => weekday !== undefined && hours.days.includes(weekday);
  if (hours.from <= hours.to) return isWanted(day) && time >= hours.from && time < hours.to;
  if (time >= hours.from) return isWanted(day);
  return time < hours.to && isWanted(dayBefore(day));
}

function wallClock(at: Date, timeZone: string): { time: string; day: Weekday | undefined } {
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
