// The dialog before a run: how many jobs match, how fast, how many at most, and what to change. It is rendered by the server, so
// it needs no script. While it is open, the page does not refresh itself: the number stays the one that was read.
import type { DeadGroup, RunAction } from "../../../core/dead-letters.ts";
import type { PageRequest, Refusal } from "../../page.ts";
import { Hidden, Input, pathOf, refusalOf, TextArea } from "../../parts/action-form.tsx";
import { clockTime, count, counted, wholeSeconds } from "../../parts/numbers.ts";
import { type DeadSearch, type Filter, formatFilter, openerId } from "./filter.ts";
import { describeGroup } from "./group-table.tsx";

interface StartDialogProps {
  request: PageRequest;
  search: DeadSearch;
  groups: readonly DeadGroup[];
  /** The number, and the time of the count. */
  counted: { dead: number; at: Date };
}

/** Jobs a minute, so that a replay is not a second outage. Discards trouble nobody, so they have no rate. */
const defaultRate = 60;
const words = { replay: "Replay", discard: "Discard" };

export function StartDialog({
  request,
  search: { filter, faults },
  groups,
  counted: { dead, at },
}: StartDialogProps) {
  const action: RunAction = request.query.get("action") === "discard" ? "discard" : "replay";
  const closeUrl = closeUrlOf(request, action, filter);
  const mayStart = request.viewer.mayChange && dead > 0 && faults.length === 0;
  const refusal = refusalOf(request, "startDeadRun");
  return (
    <dialog open aria-labelledby="dialog-title">
      <form method="post" action={mayStart ? "/actions/startDeadRun" : undefined}>
        <Hidden
          fields={{ ...filter, to: "/dead-letters", from: pathOf(request), action, until: at.toISOString() }}
        />
        <div class="stack">
          <Matches action={action} filter={filter} groups={groups} dead={dead} />
          <WhyNot request={request} faults={[...faults, ...(refusal ? [refusal.text] : [])]} />
          {mayStart ? (
            <>
              <p class="small muted">
                Counted at {clockTime(at).slice(0, 8)} UTC. Jobs that die after that are not taken along.{" "}
                {action === "replay"
                  ? "Each starts again with all its attempts."
                  : "A discarded job is kept, but it never runs again."}
              </p>
              <Fields action={action} filter={filter} dead={dead} refusal={refusal} />
            </>
          ) : null}
        </div>
        <footer>
          <a class="btn" href={closeUrl} data-close>
            Close
          </a>
          {mayStart ? (
            <>
              {dead > 1 ? (
                <button class="btn push" type="submit" name="first" value="1">
                  Try 1 first
                </button>
              ) : null}
              <button
                class={`btn ${action === "discard" ? "is-danger" : "is-main"}${dead > 1 ? "" : " push"}`}
                type="submit"
              >
                {words[action]} {counted(dead, "job")}
              </button>
            </>
          ) : null}
        </footer>
      </form>
    </dialog>
  );
}

/** Back to the list, at the link that opened the dialog. */
function closeUrlOf({ query }: PageRequest, action: RunAction, filter: Filter): string {
  const list = query.get("back");
  const path = query.get("view") === "jobs" ? "/dead-letters/jobs" : "/dead-letters";
  const search = list ? `?${new URLSearchParams({ q: list })}` : "";
  return `${path}${search}#${encodeURIComponent(openerId(action, filter))}`;
}

function Matches({
  action,
  filter,
  groups,
  dead,
}: {
  action: RunAction;
  filter: Filter;
  groups: readonly DeadGroup[];
  dead: number;
}) {
  const group = groups.find(({ fingerprint }) => fingerprint === filter.fingerprint);
  return (
    <div>
      <h2 id="dialog-title">{words[action]} dead letters</h2>
      <p class="row">
        <span class="big">{count(dead)}</span>
        <span>
          {dead === 1 ? "job" : "jobs"}
          {filter.type ? (
            <>
              {" "}
              of <b>{filter.type}</b>
            </>
          ) : null}{" "}
          {dead === 1 ? "matches" : "match"}.
          <br />
          <span class="muted">
            {group ? `${group.reason}: ${describeGroup(group)}` : formatFilter(filter) || "All dead letters."}
          </span>
        </span>
      </p>
    </div>
  );
}

function WhyNot({ request, faults }: { request: PageRequest; faults: readonly string[] }) {
  if (!request.viewer.mayChange) return <p>Only an admin can replay or discard jobs.</p>;
  return (
    <>
      {faults.map((fault) => (
        <p class="t-dead" role="alert">
          {fault}
        </p>
      ))}
    </>
  );
}

interface FieldsProps {
  action: RunAction;
  filter: Filter;
  dead: number;
  refusal: Refusal | undefined;
}

function Fields({ action, filter, dead, refusal }: FieldsProps) {
  return (
    <>
      <div class="two">
        <Input
          refusal={refusal}
          name="per_minute"
          label="Rate, jobs a minute"
          hint="Empty: as fast as it goes."
          value={action === "replay" ? String(defaultRate) : ""}
          control={{ type: "number", min: 1, max: 100_000, ...(refusal ? {} : { autofocus: true }) }}
        />
        <Input
          refusal={refusal}
          name="count"
          label="At most, jobs"
          hint="The oldest deaths first."
          value={String(dead)}
          control={{ type: "number", min: 1, required: true }}
        />
      </div>
      {action === "replay" ? <Patch filter={filter} refusal={refusal} /> : null}
      <Input
        refusal={refusal}
        name="note"
        label={action === "discard" ? "Reason, for the audit" : "Why, for the audit"}
        control={{ maxlength: 1000, required: action === "discard" }}
      />
      <p>
        {action === "replay" ? (
          <>
            At {defaultRate} a minute this takes <b>{wholeSeconds(Math.ceil((dead / defaultRate) * 60))}</b>.{" "}
          </>
        ) : null}
        You can stop it at any time.
      </p>
    </>
  );
}

/** Payloads are checked against their type, so there has to be one. */
function Patch({ filter: { type }, refusal }: Pick<FieldsProps, "filter" | "refusal">) {
  if (!type)
    return <p class="small muted">To change the payloads too, narrow the search to one type first.</p>;
  return (
    <TextArea
      refusal={refusal}
      name="payload_patch"
      label="Payload patch (JSON merge, may be empty)"
      hint="A job whose new payload does not fit its type is skipped."
      control={{ rows: 2, placeholder: '{"timeout_ms": 20000}' }}
    />
  );
}
