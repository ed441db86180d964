// Writes the rows as text for the terminal, and as Markdown.
import type { Results } from "../run.ts";
import { numberText } from "./number-text.ts";
import type { Cell, SummaryRow } from "./summary.ts";

export function table(results: Results, rows: readonly SummaryRow[]): string {
  const lines = [header(results), ...rows.map((row) => line(results, row))];
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0)));
  return lines
    .map((cells) =>
      cells
        .map((cell, column) => (column === 0 ? cell.padEnd : cell.padStart).call(cell, widths?.[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

export function markdown(results: Results, rows: readonly SummaryRow[]): string {
  const { machine, postgres } = results;
  const lines = [header(results), ...rows.map((row) => line(results, row))].map(
    (cells) => `| ${cells.join(" | ")} |`,
  );
  const rule = `| --- |${" ---: |".repeat(header(results).length - 1)}`;
  const settings = Object.entries(postgres.settings).map(([name, value]) => `${name} = ${value}`);
  return `# The bench, ${results.size} run of ${results.date.slice(0, 10)}

${machine.cpu}, ${machine.cores} cores for server and clients alike, ${machine.memoryGb} GB, ${machine.system},
Node ${machine.node}, PostgreSQL ${postgres.version} (${settings.join(", ")}).
${results.systems.map(({ name, version }) => `${name} ${version}`).join(", ")}.

Medians, with half the distance between the best and the worst round. "Best peer" is above 1 where Sluice is better.

${[lines[0], rule, ...lines.slice(1)].join("\n")}
${results.failures.map(({ workload, message }) => `\n${workload} FAILED: ${message}\n`).join("")}`;
}

function header({ systems }: Results): string[] {
  return ["", "unit", ...systems.map(({ name }) => name), "best peer", "bar", "reached", ""];
}

function line({ systems }: Results, row: SummaryRow): string[] {
  const { verdict } = row;
  return [
    row.what,
    row.unit,
    ...systems.map(({ name }) => cellText(row.cells[name])),
    row.ratio === undefined ? "" : `${row.ratio.toFixed(2)} ×`,
    verdict?.bar ?? "",
    verdict?.reached ?? "",
    verdict ? (verdict.isMet ? "met" : "MISSED") : "",
  ];
}

function cellText(cell: Cell | undefined): string {
  if (!cell) return "";
  const spread = ((cell.highest - cell.lowest) / 2 / cell.median) * 100;
  return numberText(cell.median) + (spread >= 0.5 ? ` ±${spread.toFixed(0)} %` : "");
}
