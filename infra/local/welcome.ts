// What `npm run dev` prints when it is ready: how to use it, with lines to paste.

export function howToUse(stack: {
  url: string;
  databaseUrl: string;
  neonEndpoint: string;
  adminKey: string;
  seconds: string;
}): string {
  const authorization = quote(`authorization: Bearer ${stack.adminKey}`);
  const body = quote(JSON.stringify({ type: "echo", payload: { hello: "world" } }));
  return `
Sluice is ready after ${stack.seconds} s: ${stack.url}

Enqueue a job:
  curl -sS ${stack.url}/v1/jobs -H ${authorization} -H 'content-type: application/json' -d ${body}

Look at it, with the answer's job_id in place of JOB_ID:
  curl -sS ${stack.url}/v1/jobs/JOB_ID -H ${authorization}

Database: ${stack.databaseUrl}
  for Neon's driver: neonConfig.fetchEndpoint = "${stack.neonEndpoint}"
Ctrl-C stops everything.
`;
}

/** For a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
