// The cron expressions in wrangler's settings: the strings in `crons = [ … ]`, or in `"crons": [ … ]` of a JSON file. wrangler
// could parse the file, but importing it takes longer than the whole start of the local stack.

export function readCrons(settings: string): string[] {
  const start = /^\s*crons\s*=\s*\[|"crons"\s*:\s*\[/m.exec(settings);
  if (!start) return [];
  const rest = settings.slice(start.index + start[0].length);
  const crons: string[] = [];
  // One pattern for strings and comments, because a comment may contain quotes and a string may contain a #.
  for (const [token, double, single] of rest.matchAll(/"([^"]*)"|'([^']*)'|#.*|\/\/.*|\]/g)) {
    if (token === "]") break;
    const cron = double ?? single;
    if (cron !== undefined) crons.push(cron);
  }
  return crons;
}
