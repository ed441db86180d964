// The dialog before a run: how many jobs match, how fast, how many at most, and what to change. It is rendered by the server, so
// it needs no script. While it is open, the page does not refresh itself: the number stays the one that was read.
import type { DeadGroup, RunAction } from "../../../core/dead-letters.ts";
import type { PageRequest, Refusal } from "../../page.ts";
import { Hidden, Input, pathOf, refusalOf, TextArea } from "../../parts/action-form.tsx";
import { clockTime, counted, wholeSeconds } from "../../parts/numbers.ts";
import { actionWords, ChosenGroups, Matches } from "./dialog-head.tsx";
import { type DeadSearch, type Filter, formatGroup, isChosen, openerId } from "./filter.ts";

interface StartDialogProps {
  request: PageRequest;
  search: DeadSearch;
  groups: readonly DeadGroup[];
  /** The number, and the time of the count. */
  counted: { dead: number; at: Date };
}

/** Jobs a minute, so that a replay is not a second outage. Discards trouble nobody, so they have no rate. */
const defaultRate = 60;

export function StartDialog({ request, search, groups, counted: found }: StartDialogProps) {
  const { filter, faults } = search;
  const { at } = found;
  const action: RunAction = request.query.get("action") === "discard" ? "discard" : "replay";
  // Several groups are a run each. They are counted as the list counts them.
  const chosen = groups.filter((group) => isChosen(search, group));
  const isMany = search.chosen !== undefined;
  const dead = isMany ? chosen.reduce((sum, group) => sum + group.count, 0) : found.dead;
  const closeUrl = closeUrlOf(request, action, search);
  const mayStart = request.viewer.mayChange && dead > 0 && faults.length === 0;
  const refusal = refusalOf(request, "startDeadRun");
  const shared = { to: "/dead-letters", from: pathOf(request), action, until: at.toISOString() };
  return (
    <dialog open aria-labelledby="dialog-title">
      <form
        method="post"
        action={mayStart ? `/actions/${isMany ? "startDeadRuns" : "startDeadRun"}` : undefined}
      >
        <Hidden fields={isMany ? { ...shared, queue: filter.queue } : { ...shared, ...filter }} />
        {chosen.map((group) => (
          <input type="hidden" name="id" value={formatGroup(group)} />
        ))}
        <div class="stack">
          {isMany ? (
            <ChosenGroups action={action} groups={chosen} dead={dead} />
          ) : (
            <Matches action={action} filter={filter} groups={groups} dead={dead} />
          )}
          <WhyNot request={request} faults={[...faults, ...(refusal ? [refusal.text] : [])]} />
          {mayStart ? (
            <>
              <p class="small muted">
                Counted at {clockTime(at).slice(0, 8)} UTC. Jobs that die after that are not taken along.{" "}
                {action === "replay"
                  ? "Each starts again with all its attempts."
                  : "A discarded job is kept, but it never runs again."}
              </p>
              <Fields {...{ action, filter, dead, refusal }} {...(isMany && { groups: chosen })} />
            </>
          ) : null}
        </div>
        <Buttons {...{ action, closeUrl, mayStart, dead, isMany }} />
      </form>
    </dialog>
  );
}

interface ButtonsProps {
  action: RunAction;
  closeUrl: string;
  mayStart: boolean;
  dead: number;
  isMany: boolean;
}

function Buttons({ action, closeUrl, mayStart, dead, isMany }: ButtonsProps) {
  return (
    <footer>
      <a class="btn" href={closeUrl} data-close>
        Close
      </a>
      {mayStart && dead > 1 ? (
        <button class="btn push" type="submit" name="first" value="1">
          {isMany ? "Try 1 of each first" : "Try 1 first"}
        </button>
      ) : null}
      {mayStart ? (
        <button
          class={`btn ${action === "discard" ? "is-danger" : "is-main"}${dead > 1 ? "" : " push"}`}
          type="submit"
        >
          {actionWords[action]} {counted(dead, "job")}
        </button>
      ) : null}
    </footer>
  );
}

/** Back to the list, at the link that opened the dialog. */
function closeUrlOf({ query }: PageRequest, action: RunAction, { filter, chosen }: DeadSearch): string {
  const list = query.get("back");
  if (chosen !== undefined) {
    const kept = new URLSearchParams(list ? { q: list } : {});
    for (const group of chosen) kept.append("group", formatGroup(group));
    return `/dead-letters?${kept}#${action}-chosen`;
  }
  const path = query.get("view") === "jobs" ? "/dead-letters/jobs" : "/dead-letters";
  const search = list ? `?${new URLSearchParams({ q: list })}` : "";
  return `${path}${search}#${encodeURIComponent(openerId(action, filter))}`;
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
  /** Those that are chosen, if there are several. */
  groups?: readonly DeadGroup[];
  refusal: Refusal | undefined;
}

function Fields({ action, filter, dead, groups, refusal }: FieldsProps) {
  const longest = groups ? Math.max(...groups.map((group) => group.count)) : dead;
  return (
    <>
      <div class="two">
        <Input
          refusal={refusal}
          name="per_minute"
          label={groups ? "Rate of each group, jobs a minute" : "Rate, jobs a minute"}
          hint="Empty: as fast as it goes."
          value={action === "replay" ? String(defaultRate) : ""}
          control={{ type: "number", min: 1, max: 100_000, ...(refusal ? {} : { autofocus: true }) }}
        />
        {groups ? null : (
          <Input
            refusal={refusal}
            name="count"
            label="At most, jobs"
            hint="The oldest deaths first."
            value={String(dead)}
            control={{ type: "number", min: 1, required: true }}
          />
        )}
      </div>
      {action === "replay" && !groups ? <Patch filter={filter} refusal={refusal} /> : null}
      <Input
        refusal={refusal}
        name="note"
        label={action === "discard" ? "Reason, for the audit" : "Why, for the audit"}
        control={{ maxlength: 1000, required: action === "discard" }}
      />
      <p>
        {action === "replay" ? (
          <>
            At {defaultRate} a minute this takes{" "}
            <b>{wholeSeconds(Math.ceil((longest / defaultRate) * 60))}</b>.{" "}
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
