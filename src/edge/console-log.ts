// The Log port: one JSON line an event, which is what the platform's log search reads.
import type { Log } from "../queue/ports.ts";

export const consoleLog: Log = {
  info: (event, fields) => console.log(JSON.stringify({ event, ...fields })),
  warn: (event, fields) => console.warn(JSON.stringify({ event, ...fields })),
  error: (event, fields) => console.error(JSON.stringify({ event, ...fields })),
};
