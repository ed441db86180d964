// The text that `sluice dev` prints when it is ready: how to use it, with commands to paste.

const exampleWithinMs = 5_000;
/** The types of this repository and of `sluice init`. */
const greetingTypes = ["echo", "hello"];
/** In Sluice's own repository nothing is built, so there is no `npx sluice`. */
const cli = import.meta.url.endsWith(".ts") ? "npm run -s sluice --" : "npx sluice";

export function howToUse(stack: {
  url: string;
  databaseUrl: string;
  /** Undefined if the Worker reaches Postgres another way. */
  neonEndpoint: string | undefined;
  adminKey: string;
  type: string;
  seconds: string;
}): string {
  const authorization = quote(`authorization: Bearer ${stack.adminKey}`);
  // The answer to an empty payload says which fields are missing.
  const payload = greetingTypes.includes(stack.type) ? { hello: "world" } : {};
  const body = quote(JSON.stringify({ type: stack.type, payload }));
  const transport = stack.neonEndpoint
    ? `for Neon's driver: neonConfig.fetchEndpoint = "${stack.neonEndpoint}"`
    : "the Worker reaches it through a local Hyperdrive binding";
  return `
Sluice is ready after ${stack.seconds} s.

Dashboard: ${stack.url} (sign in with the admin key ${stack.adminKey})

Enqueue a job:
  curl -sS ${stack.url}/v1/jobs -H ${authorization} -H 'content-type: application/json' -d ${body}

Or by the command line:
  ${cli} enqueue ${stack.type} ${quote(JSON.stringify(payload))}
  ${cli} status --watch

Show the job. Replace JOB_ID by the job_id of the answer:
  curl -sS ${stack.url}/v1/jobs/JOB_ID -H ${authorization}

API: ${stack.url}/docs
Database: ${stack.databaseUrl}
  ${transport}
Ctrl-C stops everything.
`;
}

/** A type that the Worker has, if possible one whose payload is known. The Worker may keep its API at another path. */
export async function exampleType(url: string, adminKey: string): Promise<string> {
  try {
    const headers = { authorization: `Bearer ${adminKey}` };
    const signal = AbortSignal.timeout(exampleWithinMs);
    const response = await fetch(`${url}/v1/admin/job-types`, { headers, signal });
    const { job_types } = (await response.json()) as { job_types: { type: string }[] };
    const own = job_types.map(({ type }) => type).filter((type) => !type.startsWith("sluice."));
    return own.find((type) => greetingTypes.includes(type)) ?? own[0] ?? "TYPE";
  } catch {
    return "TYPE";
  }
}

/** Quotes a text for a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
