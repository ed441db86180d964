// A cron expression in words: "at 09:30, Monday to Friday". It knows what people write most: stars, steps, numbers, ranges and lists.

const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const months = [
  ...["January", "February", "March", "April", "May", "June", "July", "August"],
  ...["September", "October", "November", "December"],
];
/** More times of a day are not listed. */
const maxTimes = 6;

/** An expression that it does not know stays as it is. */
export function cronInWords(cron: string): string {
  const fields = cron.trim().toLowerCase().split(/\s+/);
  if (fields.length === 6 && fields[0] === "0") fields.shift();
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = fields;
  if (fields.length !== 5) return cron;
  const time = timeInWords(minute, hour);
  const date = dateInWords(day, weekday);
  const season = month === "*" ? "" : listOf(month, (value) => nameOf(value, months, 1));
  if (time === undefined || date === undefined || season === undefined) return cron;
  const onEachDay = date === "" && season === "" && time.startsWith("at ") && !time.endsWith("hour");
  return [time, onEachDay ? " every day" : date, season && ` in ${season}`].join("");
}

function timeInWords(minute: string, hour: string): string | undefined {
  const [everyMinutes, everyHours] = [stepOf(minute), stepOf(hour)];
  if (everyMinutes && hour === "*")
    return everyMinutes === 1 ? "every minute" : `every ${everyMinutes} minutes`;
  const minutes = numbersOf(minute);
  if (minutes?.length === 1 && everyHours) {
    const often = everyHours === 1 ? "every hour" : `every ${everyHours} hours`;
    if (minutes[0] === 0) return often;
    return everyHours === 1 ? `at minute ${minute} of every hour` : `${often}, at minute ${minute}`;
  }
  const times = numbersOf(hour)?.flatMap((at) => (minutes ?? []).map((past) => `${two(at)}:${two(past)}`));
  if (times && times.length > 0 && times.length <= maxTimes) return `at ${joined(times)}`;
  const [, from, to] = /^(\d+)-(\d+)$/.exec(hour) ?? [];
  if (!from || !to || !everyMinutes) return undefined;
  const often = everyMinutes === 1 ? "every minute" : `every ${everyMinutes} minutes`;
  return `${often} from ${two(Number(from))}:00 to ${two(Number(to))}:59`;
}

/** With both a day of the month and a weekday, one of them is enough: that is left to the expression. */
function dateInWords(day: string, weekday: string): string | undefined {
  if (day === "*" && weekday === "*") return "";
  if (day === "*") {
    const named = listOf(weekday, (value) => nameOf(value, days, 0));
    return named && (/^\w+-\w+$/.test(weekday) ? `, ${named}` : ` on ${named}`);
  }
  if (weekday !== "*") return undefined;
  if (day === "l") return " on the last day of the month";
  const listed = listOf(day, (value) => (/^\d+$/.test(value) ? value : undefined));
  return listed && ` on ${/^\d+$/.test(day) ? "day" : "days"} ${listed} of the month`;
}

/** "1-5,7" as "Monday to Friday and Sunday". */
function listOf(field: string, toName: (value: string) => string | undefined): string | undefined {
  const parts = field.split(",").map((part) => {
    const ends = part.split("-").map(toName);
    return ends.length <= 2 && ends.every((end) => end !== undefined) ? ends.join(" to ") : undefined;
  });
  return parts.every((part) => part !== undefined) ? joined(parts) : undefined;
}

/** By its number, which may also be the one after the last, or by the first three letters. */
function nameOf(value: string, names: readonly string[], first: number): string | undefined {
  if (!/^\d+$/.test(value)) return names.find((name) => name.slice(0, 3).toLowerCase() === value);
  const at = Number(value) - first;
  return first === 0 ? names[at % 7] : names[at];
}

/** 1 for a star, 5 for a star with a step of 5. */
function stepOf(field: string): number | undefined {
  if (field === "*") return 1;
  const [, step] = /^\*\/(\d+)$/.exec(field) ?? [];
  return step === undefined ? undefined : Number(step);
}

function numbersOf(field: string): number[] | undefined {
  return /^\d+(,\d+)*$/.test(field) ? field.split(",").map(Number) : undefined;
}

function joined(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

function two(number: number): string {
  return String(number).padStart(2, "0");
}
