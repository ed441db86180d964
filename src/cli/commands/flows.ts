// sluice flows: list, show, cancel, delete.
import type { FlowResponse } from "../../contract/flows.ts";
import type { Commands } from "../command-table.ts";
import { jobColumns } from "../job-view.ts";
import { actionCommand, listCommand, operationCommand } from "../operation-command.ts";
import { count, plural } from "../output/words.ts";

function countsOf({ counts }: Pick<FlowResponse, "counts">): string {
  const present = Object.entries(counts).filter(([, jobs]) => jobs > 0);
  return present.map(([status, jobs]) => `${count(jobs)} ${status}`).join(", ");
}

export const commands: Commands = {
  list: listCommand("listFlows", {
    examples: ["flows list", "flows list --status dead", "flows list --all | cut -f 1"],
    rows: ({ flows }) => flows,
    columns: [
      ["FLOW", (flow) => flow.flow_id],
      ["STATUS", ({ status }) => status],
      ["JOBS", ({ total }) => total],
      ["CREATED", (flow) => flow.created_at],
      ["COUNTS", countsOf],
    ],
    empty: "there are no flows",
  }),
  show: operationCommand("getFlow", {
    examples: ["flows show 0199a1b2-…", "flows show 0199a1b2-… --limit 5"],
    show(flow, out) {
      const { flow_id, status, total, created_at, next_cursor } = flow;
      out.fields({ flow_id, status, total, created_at, counts: countsOf(flow) });
      if (out.isTerminal) out.line("");
      out.table(flow.jobs, jobColumns, "it has no jobs that this key may see");
      if (next_cursor && out.isTerminal) out.note(`there are more: --cursor ${next_cursor}`);
    },
  }),
  cancel: actionCommand("cancelFlow", {
    examples: ["flows cancel 0199a1b2-…"],
    say: ({ flow_id, cancelled }) => `${plural(cancelled, "job")} of ${flow_id} cancelled`,
  }),
  delete: actionCommand("deleteFlow", {
    examples: ["flows delete 0199a1b2-…"],
    say: ({ flow_id }) => `${flow_id} is deleted`,
  }),
};
