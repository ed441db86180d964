// The dialog before a run: how many jobs match, how fast, how many at most, and what to change. It is rendered by the server, so
// it needs no script. While it is open, the page does not refresh itself: the number stays the one that was read.
import type { DeadGroup, RunAction } from "../../../core/dead-letters.ts";
import type { PageRequest } from "../../page.ts";
import { Field } from "../../parts/action-form.tsx";
import { clockTime, count, counted, wholeSeconds } from "../../parts/numbers.ts";
import { type DeadSearch, deadUrl, type Filter, formatFilter } from "./filter.ts";
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
  const closeUrl = deadUrl("/dead-letters", { ...filter, fingerprint: undefined });
  const mayStart = request.viewer.mayChange && dead > 0 && faults.length === 0;
  const hidden = { to: "/dead-letters", action, ...filter, until: at.toISOString() };
  return (
    <dialog open aria-labelledby="dialog-title">
      <form method="post" action={mayStart ? "/actions/startDeadRun" : undefined}>
        {Object.entries(hidden).map(([name, value]) =>
          value === undefined ? null : <input type="hidden" name={name} value={value} />,
        )}
        <div class="stack">
          <Matches action={action} filter={filter} groups={groups} dead={dead} />
          <WhyNot request={request} faults={faults} />
          {mayStart ? (
            <>
              <p class="small muted">
                Counted at {clockTime(at).slice(0, 8)} UTC. Jobs that die after that are not taken along.{" "}
                {action === "replay"
                  ? "Each starts again with all its attempts."
                  : "A discarded job is kept, but it never runs again."}
              </p>
              <Fields action={action} filter={filter} dead={dead} />
            </>
          ) : null}
        </div>
        <footer>
          <a class="btn" href={closeUrl}>
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

function Fields({ action, filter, dead }: { action: RunAction; filter: Filter; dead: number }) {
  return (
    <>
      <div class="two">
        <Field id="per_minute" label="Rate, jobs a minute" hint="Empty: as fast as it goes.">
          <input
            id="per_minute"
            name="per_minute"
            type="number"
            min="1"
            max="100000"
            value={action === "replay" ? String(defaultRate) : ""}
            autofocus
          />
        </Field>
        <Field id="count" label="At most, jobs" hint="The oldest deaths first.">
          <input id="count" name="count" type="number" min="1" value={String(dead)} required />
        </Field>
      </div>
      {action === "replay" ? <Patch filter={filter} /> : null}
      <Field id="note" label={action === "discard" ? "Reason, for the audit" : "Why, for the audit"}>
        <input id="note" name="note" maxlength={1000} required={action === "discard"} />
      </Field>
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
function Patch({ filter: { type } }: { filter: Filter }) {
  if (!type)
    return <p class="small muted">To change the payloads too, narrow the search to one type first.</p>;
  return (
    <Field
      id="payload_patch"
      label="Payload patch (JSON merge, may be empty)"
      hint="A job whose new payload does not fit its type is skipped."
    >
      <textarea
        id="payload_patch"
        name="payload_patch"
        rows={2}
        spellcheck={false}
        placeholder='{"timeout_ms": 20000}'
      />
    </Field>
  );
}
