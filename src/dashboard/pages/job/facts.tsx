// The fields of a job.
import type { ShownJob } from "../../../core/sql/jobs.ts";
import type { PageRequest } from "../../page.ts";
import { Card, Definitions } from "../../parts/card.tsx";
import { JobId, jobsUrl } from "../../parts/links.tsx";
import { wholeSeconds } from "../../parts/numbers.ts";
import { Time } from "../../parts/time.tsx";

export function Facts({ request, job }: { request: PageRequest; job: ShownJob }) {
  const definition = request.registry.find(job.type);
  const { culprit, supersededBy, schedule } = job;
  return (
    <Card id="facts" title="Facts">
      <Definitions
        entries={[
          ["Id", <code>{job.id}</code>],
          ["Type", <a href={jobsUrl({ type: job.type })}>{job.type}</a>],
          ["Queue", <a href={jobsUrl({ queue: job.queue })}>{job.queue}</a>],
          ["Priority", `${job.priority} of 9`],
          ["Attempts", `${job.attempts} of ${job.maxAttempts}`],
          ["Created", <Time at={job.createdAt} now={request.now} />],
          ["Partition key", job.partitionKey ? <code>{job.partitionKey}</code> : undefined],
          ["Bucket", job.partitionBucket ?? undefined],
          ["Fair key", job.fairKey ? <code>{job.fairKey}</code> : undefined],
          ["Idempotency", job.idempotencyKey ? <code>{job.idempotencyKey}</code> : undefined],
          ["Tags", job.tags.length > 0 ? <Tags tags={job.tags} /> : undefined],
          ["Schedule", schedule ? `${schedule.name}, slot ${schedule.slot}` : undefined],
          ["Killed by", culprit ? <JobId id={culprit} /> : undefined],
          ["Replaced by", supersededBy ? <JobId id={supersededBy} /> : undefined],
          [
            "Time-out",
            definition ? wholeSeconds(definition.timeoutSeconds) : "this deployment does not have the type",
          ],
          ["Trace", job.traceparent ? <code>{job.traceparent}</code> : undefined],
        ]}
      />
    </Card>
  );
}

function Tags({ tags }: { tags: readonly string[] }) {
  return (
    <span class="chips">
      {tags.map((tag) => (
        <a class="chip" href={jobsUrl({ tag })}>
          {tag}
        </a>
      ))}
    </span>
  );
}
