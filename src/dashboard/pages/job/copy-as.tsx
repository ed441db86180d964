// The same job by other means: curl, SQL, the command line.
import type { PageRequest } from "../../page.ts";
import { Code, CopyButton } from "../../parts/card.tsx";

export function CopyAs({ request, job: { id } }: { request: PageRequest; job: { id: string } }) {
  const ways = [
    ["curl", `curl -H "authorization: Bearer $SLUICE_KEY" \\\n  ${request.url.origin}/v1/jobs/${id}`],
    ["SQL", `select * from ${request.settings.schema}.jobs\nwhere id = '${id}';`],
    ["Command line", `npx sluice jobs get ${id}`],
  ] as const;
  return (
    <section class="card" aria-labelledby="copy-as">
      <header>
        <h2 id="copy-as">Copy as</h2>
      </header>
      {ways.map(([name, text], index) => (
        <details name="copy" open={index === 0}>
          <summary>{name}</summary>
          <div class="copy">
            <Code label={name} text={text} id={`copy-${index}`} />
            <CopyButton of={`copy-${index}`} />
          </div>
        </details>
      ))}
    </section>
  );
}
