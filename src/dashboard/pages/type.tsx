// One type: what it did in the last hour, its options, and a form that enqueues a job of it.
import { isOwnType } from "../../core/alarms/alarm.ts";
import type { Percentiles } from "../../core/durations.ts";
import { SluiceError } from "../../core/errors.ts";
import type { JobDefinition } from "../../jobs/define.ts";
import type { Page, PageRequest } from "../page.ts";
import { Card, Definitions } from "../parts/card.tsx";
import { type Figure, Figures } from "../parts/figures.tsx";
import { jobsUrl } from "../parts/links.tsx";
import { count, counted, duration, wholeSeconds } from "../parts/numbers.ts";
import { Time } from "../parts/time.tsx";
import { EnqueueForm } from "./types/enqueue-form.tsx";
import { formatShare, limitsInUse, readTypes, type ShownType } from "./types/shown-type.ts";
import { PauseForm, TypeState } from "./types/type-state.tsx";

export const type: Page = {
  path: "/types/:type",
  section: "Types",
  async render(request) {
    const name = request.param("type");
    const shown = (await readTypes(request)).find((other) => other.type === name);
    if (!shown) throw new SluiceError("not_found", `there is no type "${name}"`);
    const { definition } = shown;
    return {
      title: name,
      crumbs: <a href="/types">Types</a>,
      facts: <TypeState shown={shown} />,
      tools: <PauseForm request={request} shown={shown} />,
      body: (
        <>
          <LastHour shown={shown} />
          <div class="two">
            <Card id="options" title="Options">
              {definition ? <Options definition={definition} shown={shown} request={request} /> : <Stray />}
              <p class="pad row">
                <a href={jobsUrl({ type: name })}>Jobs</a>
                <a href={`/dead-letters?type=${encodeURIComponent(name)}`}>Dead letters</a>
              </p>
            </Card>
            {definition && request.viewer.mayChange && !isOwnType(name) ? (
              <EnqueueForm request={request} definition={definition} />
            ) : null}
          </div>
        </>
      ),
    };
  },
};

function Stray() {
  return (
    <p class="pad">
      There are or were jobs of this type, but this deployment does not define it. Its jobs wait until a
      deployment does.
    </p>
  );
}

function LastHour({ shown }: { shown: ShownType }) {
  const { completed, enqueued, failed, retried, died, failureRate, waiting, processing, counts } = shown;
  return (
    <Figures
      figures={[
        {
          name: "Completed",
          value: count(completed),
          unit: "in the last hour",
          note: `${counted(enqueued, "job")} enqueued, ${count(counts.pending)} waiting now`,
        },
        {
          name: "Failed attempts",
          value: failureRate === null ? "–" : formatShare(failureRate),
          unit: failureRate === null ? "no attempt ended" : "of all attempts",
          note: `${count(failed)} failed, ${count(retried)} retried, ${counted(died, "job")} died`,
        },
        { name: "Wait, from due to claimed", ...longest(waiting) },
        { name: "Run, from claimed to completed", ...longest(processing) },
      ]}
    />
  );
}

function longest(percentiles: Percentiles | null): Pick<Figure, "value" | "unit" | "note"> {
  if (!percentiles) return { value: "–", unit: "", note: "none counted yet" };
  const { jobs, p50Seconds, p95Seconds } = percentiles;
  return {
    value: duration(p95Seconds * 1000),
    unit: "p95",
    note: `p50 ${duration(p50Seconds * 1000)}, of ${counted(jobs, "job")}`,
  };
}

const workNames = { single: "the Worker", batch: "the Worker, in batches", pulled: "pullers" };

interface OptionsProps {
  request: PageRequest;
  definition: JobDefinition;
  shown: ShownType;
}

function Options({ request: { now }, definition, shown }: OptionsProps) {
  const { queue, work, maxAttempts, backoff, timeoutSeconds, leaseSeconds } = definition;
  const { pausedSince, breaker } = shown;
  return (
    <Definitions
      entries={[
        ["Queue", <a href={jobsUrl({ queue })}>{queue}</a>],
        ["Runs in", workNames[work.kind]],
        ["Attempts", `${maxAttempts}, ${describeBackoff(backoff)}`],
        ["Time-out", wholeSeconds(timeoutSeconds)],
        ["Lease", wholeSeconds(leaseSeconds)],
        ["Limits in use", limitsInUse(shown).join("; ") || "it has no limits"],
        ["Paused", pausedSince ? <Time at={pausedSince} now={now} /> : "no"],
        ["Breaker", <Breaker breaker={breaker} now={now} />],
      ]}
    />
  );
}

function describeBackoff({ baseSeconds, maxSeconds }: JobDefinition["backoff"]): string {
  const first = `${wholeSeconds(baseSeconds)} apart`;
  return maxSeconds > baseSeconds ? `${first}, doubling up to ${wholeSeconds(maxSeconds)}` : first;
}

function Breaker({ breaker, now }: { breaker: ShownType["breaker"]; now: Date }) {
  if (!breaker) return <>closed, it never opened</>;
  const { openedAt, closedAt, step } = breaker;
  if (closedAt === null)
    return (
      <>
        open since <Time at={openedAt} now={now} />: most attempts failed, so only a probe runs from time to
        time
      </>
    );
  return (
    <>
      {step === null ? "closed" : "closing step by step"} since <Time at={closedAt} now={now} />
    </>
  );
}
