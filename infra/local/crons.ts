// The cron expressions of wrangler.toml: the strings in `crons = [ … ]`. wrangler could parse the file, but importing it
// takes longer than the whole start of the local stack.

export function readCrons(toml: string): string[] {
  const start = /^\s*crons\s*=\s*\[/m.exec(toml);
  if (!start) return [];
  const rest = toml.slice(start.index + start[0].length);
  const crons: string[] = [];
  // One pattern for strings and comments, because a comment may contain quotes and a string may contain a #.
  for (const [token, double, single] of rest.matchAll(/"([^"]*)"|'([^']*)'|#.*|\]/g)) {
    if (token === "]") break;
    const cron = double ?? single;
    if (cron !== undefined) crons.push(cron);
  }
  return crons;
}
