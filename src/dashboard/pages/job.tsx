// One job: what happened to it, why it waits, what is in it, and what can be done about it.
import { SluiceError } from "../../core/errors.ts";
import { describeWaiting } from "../../core/policy/waiting-for.ts";
import { findChain, findFlow, findShownJob, listSteps } from "../../core/sql/index.ts";
import type { ShownJob } from "../../core/sql/shown-jobs.ts";
import type { Page, PageRequest } from "../page.ts";
import { Card, Code, CopyButton } from "../parts/card.tsx";
import { hiddenTypes, WhatNext } from "../parts/job-table.tsx";
import { JobId, jobsUrl } from "../parts/links.tsx";
import { absolute, bytesText } from "../parts/numbers.ts";
import { JobState, StateShape } from "../parts/state.tsx";
import { isUuid } from "../search.ts";
import { MoreActions, QuickActions } from "./job/actions.tsx";
import { CopyAs } from "./job/copy-as.tsx";
import { Facts } from "./job/facts.tsx";
import { ChainCard, FlowCard } from "./job/relations.tsx";
import { Steps } from "./job/steps.tsx";
import { Timeline } from "./job/timeline.tsx";

export const job: Page = {
  path: "/jobs/:id",
  section: "Jobs",
  async render(request) {
    const shown = await findJob(request);
    const { id, flowId, chainId } = shown;
    const isHidden = shown.payloadText === null;
    const [flow, chain, steps] = await Promise.all([
      flowId ? request.db.run(findFlow(flowId)) : null,
      // Of a flow and a chain the flow says more, and a page has three statements.
      chainId && !flowId ? request.db.run(findChain(chainId)) : null,
      isHidden ? null : request.db.run(listSteps(id)),
    ]);
    return {
      title: `Job ${shown.type}`,
      crumbs: (
        <>
          <a href="/jobs">Jobs</a> / <a href={jobsUrl({ type: shown.type })}>{shown.type}</a>
        </>
      ),
      facts: (
        <>
          <JobState job={shown} now={request.now} />
          <span class="muted">
            <WhatNext job={shown} now={request.now} />
          </span>
        </>
      ),
      tools: <QuickActions request={request} job={shown} />,
      body: (
        <div class="aside">
          <div class="stack">
            <Waiting request={request} job={shown} />
            <Timeline request={request} job={shown} />
            {steps ? <Steps steps={steps} now={request.now} /> : null}
            <Payload id="payload" title="Payload" none="none" text={shown.payloadText} isHidden={isHidden} />
            <Payload
              id="output"
              title="Output"
              none={isOpen(shown) ? "none yet: it is what the handler returns" : "none"}
              text={shown.outputText}
              isHidden={isHidden}
            />
          </div>
          <div class="stack">
            <MoreActions request={request} job={shown} />
            <Facts request={request} job={shown} />
            {flow ? <FlowCard flow={flow} /> : null}
            {chain ? <ChainCard chain={chain} job={shown} /> : null}
            <CopyAs request={request} job={shown} />
          </div>
        </div>
      ),
    };
  },
};

async function findJob({ db, registry, param }: PageRequest): Promise<ShownJob> {
  const id = param("id");
  const found = isUuid(id)
    ? await db.run(findShownJob(id, { types: registry.all(), hiddenTypes: hiddenTypes(registry) }))
    : undefined;
  if (!found)
    throw new SluiceError(
      "not_found",
      `there is no job ${id}: it never was, or its time of retention is over`,
    );
  return found;
}

function Waiting({ request, job: shown }: { request: PageRequest; job: ShownJob }) {
  if (!shown.waitingFor) return null;
  const definition = request.registry.find(shown.type);
  const takenBy = definition ? (definition.work.kind === "pulled" ? "puller" : "drain") : null;
  const { kind, detail, jobIds } = describeWaiting({ ...shown, takenBy }, shown.waitingFor);
  return (
    <Card
      id="why"
      title="Why it is waiting"
      note={<span class="muted small push">as of {absolute(request.now).slice(11)}</span>}
    >
      <ul class="gates">
        <li class="is-holding">
          <StateShape shape={shown.status === "blocked" ? "blocked" : "later"} label="holds it" />
          <span>
            <b>{kindNames[kind]}</b> <Detail text={detail} jobIds={jobIds} />
          </span>
        </li>
      </ul>
    </Card>
  );
}

/** The ids in the sentence are links. Those that it does not name come after it. */
function Detail({ text, jobIds }: { text: string; jobIds: readonly string[] }) {
  const named = jobIds.filter((id) => text.includes(id));
  const others = jobIds.filter((id) => !named.includes(id));
  const [id] = named;
  const [before = "", after = ""] = id ? text.split(id) : [text];
  return (
    <>
      {before}
      {id ? <JobId id={id} /> : null}
      {after}
      {others.map((other) => (
        <>
          {" "}
          <JobId id={other} />
        </>
      ))}
    </>
  );
}

const kindNames = {
  time: "Time:",
  turn: "Its turn:",
  key: "Key:",
  jobs: "Other jobs:",
  signal: "Signal:",
  pause: "Pause:",
  limit: "Limit:",
  breaker: "Breaker:",
};

/** It may still get an output. */
function isOpen({ status }: ShownJob): boolean {
  return status === "pending" || status === "blocked" || status === "processing";
}

interface PayloadProps {
  id: string;
  title: string;
  /** What the card says if there is none. */
  none: string;
  text: string | null;
  isHidden: boolean;
}

/** The text comes from Postgres. It is never parsed: JavaScript would round large numbers. */
function Payload({ id, title, none, text, isHidden }: PayloadProps) {
  if (text === null)
    return (
      <Card
        id={`${id}-title`}
        title={title}
        note={<span class="muted small">{isHidden ? "hidden by its type" : none}</span>}
      />
    );
  return (
    <Card
      id={`${id}-title`}
      title={title}
      note={
        <>
          <span class="muted small">as stored, {bytesText(text)}</span>
          <CopyButton of={id} />
        </>
      }
    >
      <Code label={title} text={text} id={id} />
    </Card>
  );
}
