// What Sluice needs of wrangler's settings, and how it comes into a file that is already there. The template is the source.
import {
  add,
  type Format,
  parseJsonc,
  render,
  textOf,
  topLevelOf,
  withoutComments,
} from "../../local/settings-text.ts";
import { readTemplate } from "./templates.ts";

/** How each setting looks when it is there, in both formats. */
const marks: Record<string, readonly RegExp[]> = {
  compatibility_flags: [/"enable_request_signal"/],
  triggers: [/"\* \* \* \* \*"/, /"\*\/2 \* \* \* \*"/, /"1-59\/2 \* \* \* \*"/],
  services: [/binding"?\s*[=:]\s*"SELF"/],
  durable_objects: [/name"?\s*[=:]\s*"CLOCK"/],
  migrations: [/new_sqlite_classes"?\s*[=:]\s*\[[^\]]*"SluiceClock"/],
  ratelimits: [/name"?\s*[=:]\s*"RATE_LIMITER"/],
};

export interface SettingsPlan {
  /** The file with the settings. Undefined: nothing is added. */
  text?: string;
  added: string[];
  /** What a person has to add, because the setting is there with other contents. */
  byHand: string;
}

export function newSettings(name: string): string {
  return readTemplate("wrangler.jsonc").replaceAll("my-worker", name);
}

export function planSettings(text: string, format: Format, folderName: string): SettingsPlan {
  const wanted = parseJsonc(newSettings(textOf(text, "name", format) ?? folderName));
  const { names, lists } = topLevelOf(text, format);
  const plain = withoutComments(text, format);
  const missing = Object.keys(marks).filter((name) => !marks[name]?.every((mark) => mark.test(plain)));
  const canAdd = missing.filter((name) => !names.has(name) || lists.has(name));
  const pick = (keys: string[]) => Object.fromEntries(keys.map((key) => [key, wanted[key]]));
  const left = missing.filter((name) => !canAdd.includes(name));
  return {
    ...(canAdd.length > 0 && { text: add(text, pick(canAdd), format) }),
    added: canAdd,
    byHand: left.length > 0 ? render(pick(left), format) : "",
  };
}
