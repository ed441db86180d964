// The partition keys that stand still behind a dead job, with what can be done about it.
import type { BlockedKey, BlockedKeyPosition } from "../../../core/sql/blocked-keys.ts";
import type { PageRequest } from "../../page.ts";
import { ActionForm, actionsColumn } from "../../parts/action-form.tsx";
import { Card } from "../../parts/card.tsx";
import { JobId } from "../../parts/links.tsx";
import { count } from "../../parts/numbers.ts";
import { Pager, takePage } from "../../parts/pager.tsx";
import { Table } from "../../parts/table.tsx";
import { Age } from "../../parts/time.tsx";
import { isUuid } from "../../search.ts";

interface Props {
  request: PageRequest;
  found: readonly BlockedKey[];
  /** All of them. */
  total: number;
  blocks: boolean;
}

export function BlockedKeys({ request, found, total, blocks }: Props) {
  const { shown, next } = takePage(found, ({ position }) => encodePosition(position));
  return (
    <Card
      id="blocked-keys"
      title="Blocked keys"
      note={
        <span class="muted small">{total === 0 ? "none" : `${count(total)}, the longest blocked first`}</span>
      }
    >
      {shown.length === 0 ? (
        <p class="pad muted">
          {blocks
            ? "A dead job with a partition key stops the jobs behind it until it is replayed or discarded. Then its key is listed here."
            : "Dead jobs of this queue do not stop the jobs behind them (onDead: pass)."}
        </p>
      ) : (
        <Table
          name="Blocked keys"
          rows={shown}
          columns={[
            { title: "Key", class: "nw", cell: ({ partitionKey }) => <code>{partitionKey}</code> },
            { title: "Waiting", class: "n", cell: (key) => waitingText(key) },
            { title: "Dead job", cell: ({ jobId }) => <JobId id={jobId} /> },
            { title: "Why it is dead", class: "two-line hide-s", cell: (key) => <Why {...key} /> },
            { title: "Blocked for", class: "n", cell: ({ since }) => <Age at={since} now={request.now} /> },
            ...actionsColumn<BlockedKey>(request, (key) => <Actions request={request} blocked={key} />),
          ]}
        />
      )}
      <Pager request={request} next={next} words={{ first: "First page", next: "Next page" }} />
    </Card>
  );
}

function waitingText({ waiting, waitingIsMore }: BlockedKey): string {
  return waitingIsMore ? `more than ${count(waiting)}` : count(waiting);
}

function Why({ type, deadReason, error }: BlockedKey) {
  return (
    <>
      <span>
        {type} <span class="muted">{deadReason}</span>
      </span>
      <code class="muted">{error ?? "no error was recorded"}</code>
    </>
  );
}

function Actions({ request, blocked }: { request: PageRequest; blocked: BlockedKey }) {
  const fields = { id: blocked.jobId };
  return (
    <div class="row">
      <ActionForm request={request} action="replayDeadLetter" fields={fields} label="Replay" />
      <ActionForm
        request={request}
        action="discardDeadLetter"
        fields={fields}
        label="Discard"
        kind="danger"
        confirm="Discard the dead job? The jobs behind it run then."
      />
    </div>
  );
}

function encodePosition({ sinceMicros, jobId }: BlockedKeyPosition): string {
  return `${sinceMicros}_${jobId}`;
}

/** A cursor that is none is the first page. */
export function positionOf({ query }: PageRequest): BlockedKeyPosition | undefined {
  const [sinceMicros = "", jobId = ""] = (query.get("before") ?? "").split("_");
  return /^\d{1,18}$/.test(sinceMicros) && isUuid(jobId) ? { sinceMicros, jobId } : undefined;
}
