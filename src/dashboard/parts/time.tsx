// A time: relative, with the absolute time in its title.
import { absolute, wholeSeconds } from "./numbers.ts";

/** "8 s ago", "in 1 min 53 s". A clock that is a little behind does not make "-1 s ago". */
export function Time({ at, now }: { at: Date; now: Date }) {
  const seconds = Math.round((at.getTime() - now.getTime()) / 1000);
  const text =
    seconds > 0 ? `in ${wholeSeconds(seconds)}` : seconds === 0 ? "now" : `${wholeSeconds(-seconds)} ago`;
  return (
    <time datetime={at.toISOString()} title={absolute(at)}>
      {text}
    </time>
  );
}

/** How long ago, as a bare length: "6 min 51 s". */
export function Age({ at, now }: { at: Date; now: Date }) {
  const seconds = Math.max(0, Math.floor((now.getTime() - at.getTime()) / 1000));
  return (
    <time datetime={at.toISOString()} title={absolute(at)}>
      {wholeSeconds(seconds)}
    </time>
  );
}

/** An absolute time, where the order of times is what matters. */
export function Moment({ at, text }: { at: Date; text: string }) {
  return (
    <time datetime={at.toISOString()} title={absolute(at)}>
      {text}
    </time>
  );
}
