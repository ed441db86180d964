// The text that `npm run dev` prints when it is ready: how to use it, with commands to paste.

export function howToUse(stack: {
  url: string;
  databaseUrl: string;
  /** Undefined if the Worker reaches Postgres another way. */
  neonEndpoint: string | undefined;
  adminKey: string;
  seconds: string;
}): string {
  const authorization = quote(`authorization: Bearer ${stack.adminKey}`);
  const body = quote(JSON.stringify({ type: "echo", payload: { hello: "world" } }));
  const transport = stack.neonEndpoint
    ? `for Neon's driver: neonConfig.fetchEndpoint = "${stack.neonEndpoint}"`
    : "the Worker reaches it through a local Hyperdrive binding";
  return `
Sluice is ready after ${stack.seconds} s. The dashboard is at ${stack.url}

Dashboard: ${stack.url}/ (sign in with ${stack.adminKey})

Enqueue a job:
  curl -sS ${stack.url}/v1/jobs -H ${authorization} -H 'content-type: application/json' -d ${body}

Or by the command line:
  npm run -s sluice -- enqueue echo '{"hello": "world"}'
  npm run -s sluice -- status --watch

Show the job. Replace JOB_ID by the job_id of the answer:
  curl -sS ${stack.url}/v1/jobs/JOB_ID -H ${authorization}

Database: ${stack.databaseUrl}
  ${transport}
Ctrl-C stops everything.
`;
}

/** Quotes a text for a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
