// The Log port. It writes one line of JSON for each event, which the platform's log search can read.
import type { Log } from "../queue/ports.ts";

/** `isDetailed` adds what happens too often to be logged always. */
export function createConsoleLog({ isDetailed }: { isDetailed: boolean }): Log {
  return isDetailed ? { ...consoleLog, debug: consoleLog.info } : consoleLog;
}

export const consoleLog: Log = {
  info: (event, fields) => console.log(JSON.stringify({ event, ...fields })),
  warn: (event, fields) => console.warn(JSON.stringify({ event, ...fields })),
  error: (event, fields) => console.error(JSON.stringify({ event, ...fields })),
};
