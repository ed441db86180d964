// The groups of dead letters, the largest first.
import type { DeadGroup } from "../../../core/dead-letters.ts";
import type { DeadGroups } from "../../../core/sql/dead-groups.ts";
import type { PageRequest } from "../../page.ts";
import { actionsColumn } from "../../parts/action-form.tsx";
import { Sparkline } from "../../parts/bar.tsx";
import { count, counted } from "../../parts/numbers.ts";
import { type Column, Table } from "../../parts/table.tsx";
import { Age, Time } from "../../parts/time.tsx";
import {
  type DeadSearch,
  deadUrl,
  type Filter,
  formatGroup,
  isChosen,
  openerId,
  startUrl,
} from "./filter.ts";

interface GroupTableProps {
  request: PageRequest;
  search: DeadSearch;
  found: DeadGroups;
}

export function GroupTable({ request, search, found: { groups, totalGroups, totalDead } }: GroupTableProps) {
  const { now } = request;
  const { filter } = search;
  const select: Column<DeadGroup> = {
    title: "Select",
    isHidden: true,
    class: "fit",
    cell: (group) => (
      <input
        type="checkbox"
        name="group"
        value={formatGroup(group)}
        checked={isChosen(search, group)}
        aria-label={`Select ${group.type}, ${group.reason}: ${describeGroup(group)}`}
      />
    ),
  };
  const columns: Column<DeadGroup>[] = [
    ...(request.viewer.mayChange ? [select] : []),
    {
      title: "Error, type and reason",
      class: "two-line",
      cell: (group) => (
        <>
          <a
            href={deadUrl("/dead-letters/jobs", filterOf(group, filter))}
            title={group.error ?? describeGroup(group)}
          >
            {describeGroup(group)}
          </a>
          <span class="muted small">
            {group.type}, {group.reason}
          </span>
        </>
      ),
    },
    { title: "Jobs", class: "n", cell: (group) => <b>{count(group.count)}</b> },
    { title: "Died, last 24 h", class: "hide-s", cell: ({ hours }) => <Deaths hours={hours} /> },
    { title: "First", class: "n hide-m muted", cell: ({ firstAt }) => <Age at={firstAt} now={now} /> },
    { title: "Last", class: "n hide-s", cell: ({ lastAt }) => <Time at={lastAt} now={now} /> },
    ...actionsColumn(request, actionsOf(filter)),
  ];
  return (
    <Table
      name="Groups of dead letters"
      isNameless
      rows={groups}
      columns={columns}
      foot={
        <tfoot>
          <tr>
            {request.viewer.mayChange ? <td class="fit" /> : null}
            <th scope="row">
              {groups.length < totalGroups
                ? `The ${counted(groups.length, "largest group", "largest groups")} of ${count(totalGroups)}. Narrow the search to see the others.`
                : counted(totalGroups, "group")}
            </th>
            <td class="n">{count(totalDead)}</td>
            {columns.slice(request.viewer.mayChange ? 3 : 2).map(({ class: kind }) => (
              <td class={kind} />
            ))}
          </tr>
        </tfoot>
      }
    />
  );
}

function actionsOf(filter: Filter): Column<DeadGroup>["cell"] {
  return (group) => {
    const own = filterOf(group, filter);
    const what = `${count(group.count)} of ${group.type}, ${group.reason}: ${describeGroup(group)}`;
    const link = (action: "replay" | "discard", text: string, kind: string) => (
      <a
        class={`btn${kind}`}
        id={openerId(action, own)}
        href={startUrl(action, own, filter)}
        aria-label={`${text} ${what}`}
      >
        {text}
      </a>
    );
    return (
      <>
        {link("replay", "Replay", "")} {link("discard", "Discard", " is-quiet hide-s")}
      </>
    );
  };
}

function Deaths({ hours }: { hours: readonly number[] }) {
  const deaths = hours.reduce((sum, number) => sum + number, 0);
  return (
    <Sparkline label={`${counted(deaths, "death", "deaths")} in 24 hours`} values={hours} shape="dead" />
  );
}

/** What the errors of a group have in common. */
export function describeGroup({ pattern, error, reason }: DeadGroup): string {
  return pattern ?? error ?? withoutError[reason];
}

const withoutError: Record<DeadGroup["reason"], string> = {
  exhausted: "It used up its attempts",
  fatal: "It failed for good",
  expired: "It was not done by its expires_at",
  abandoned: "Its lease ran out: the invocation ended without an answer",
  blocker: "A job that it waited for did not complete",
};

function filterOf({ type, reason, fingerprint }: DeadGroup, { queue }: Filter): Filter {
  return { type, reason, fingerprint, queue };
}
