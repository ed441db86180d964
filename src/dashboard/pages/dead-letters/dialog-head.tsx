// The head of the dialog before a run: the number first, and which jobs these are.
import type { DeadGroup, RunAction } from "../../../core/dead-letters.ts";
import { count, counted } from "../../parts/numbers.ts";
import { type Filter, formatFilter } from "./filter.ts";
import { describeGroup } from "./group-table.tsx";

export const actionWords = { replay: "Replay", discard: "Discard" };

export function Matches({
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
      <h2 id="dialog-title">{actionWords[action]} dead letters</h2>
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

export function ChosenGroups({
  action,
  groups,
  dead,
}: {
  action: RunAction;
  groups: readonly DeadGroup[];
  dead: number;
}) {
  return (
    <div>
      <h2 id="dialog-title">{actionWords[action]} dead letters</h2>
      <p class="row">
        <span class="big">{count(dead)}</span>
        <span>
          {dead === 1 ? "job" : "jobs"} of {counted(groups.length, "group")}.
          <br />
          <span class="muted">Each group is a run of its own, which you can stop.</span>
        </span>
      </p>
      <ul class="chosen small">
        {groups.map((group) => (
          <li>
            <b>{count(group.count)}</b> {group.type}, {group.reason}:{" "}
            <span class="muted">{describeGroup(group)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
