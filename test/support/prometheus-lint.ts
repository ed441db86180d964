// Checks a page of metrics as `promtool check metrics` does, and for what a parser needs. Returns every fault as a text.

export interface Line {
  name: string;
  labels: Record<string, string>;
  value: number;
}

export interface ParsedFamily {
  name: string;
  help: string;
  type: string;
  lines: Line[];
}

const sample =
  /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)$/;
const value = /^(?:[+-]?Inf|NaN|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/;

export function parseMetrics(text: string): { families: ParsedFamily[]; faults: string[] } {
  const faults: string[] = [];
  const families: ParsedFamily[] = [];
  if (!text.endsWith("\n")) faults.push("the last line does not end");
  for (const line of text.split("\n").slice(0, -1)) {
    const [, keyword, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    const current = families.at(-1);
    if (keyword === "HELP") families.push({ name, help: rest, type: "", lines: [] });
    else if (keyword === "TYPE" && current?.name === name && !current.type && current.lines.length === 0)
      current.type = rest;
    else {
      const [, sampleName = "", labels = "", number = ""] = sample.exec(line) ?? [];
      if (!sampleName || !value.test(number)) faults.push(`not a line of metrics: ${line}`);
      else if (!current?.type) faults.push(`no HELP and TYPE before ${line}`);
      else
        current.lines.push({
          name: sampleName,
          labels: labelsOf(labels),
          value: Number(number.replace("Inf", "Infinity")),
        });
    }
  }
  return { families, faults: [...faults, ...families.flatMap(faultsOf), ...repeated(families)] };
}

function labelsOf(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name, of]) => [name, of]),
  );
}

function repeated(families: readonly ParsedFamily[]): string[] {
  const twice = (names: readonly string[]) => {
    const earlier = new Set<string>();
    return names.filter((name) => earlier.size === earlier.add(name).size);
  };
  const series = families.flatMap(({ lines }) =>
    lines.map(({ name, labels }) => name + JSON.stringify(Object.entries(labels).sort())),
  );
  return [...twice(families.map(({ name }) => name)), ...twice(series)].map(
    (name) => `${name} is there twice`,
  );
}

function faultsOf(family: ParsedFamily): string[] {
  const { name, type, lines } = family;
  const isHistogram = type === "histogram";
  const rules: [boolean, string][] = [
    [!["counter", "gauge", "histogram"].includes(type), `${name} has the type "${type}"`],
    [lines.length === 0, `${name} has no samples`],
    [
      (type === "counter") !== name.endsWith("_total"),
      `${name}: _total is for counters, and for all of them`,
    ],
    [/_(count|sum|bucket|info)$/.test(name), `${name} ends like a part of another`],
    [/(gauge|counter|histogram|summary)/.test(name), `${name} has its type in its name`],
    [/_(ms|milliseconds|minutes|hours|kb|mb|percent)(_|$)/.test(name), `${name} is not in a base unit`],
    [/[A-Z:]/.test(name), `${name} is not in snake_case`],
    [
      !isHistogram && lines.some((line) => line.name !== name || "le" in line.labels),
      `${name} has strange samples`,
    ],
    [type === "counter" && lines.some((line) => line.value < 0), `${name} is negative`],
  ];
  return [
    ...rules.filter(([isBroken]) => isBroken).map(([, fault]) => fault),
    ...(isHistogram ? histogramFaults(family) : []),
  ];
}

function histogramFaults({ name, lines }: ParsedFamily): string[] {
  const bySeries = Map.groupBy(lines, ({ labels: { le: _, ...rest } }) => JSON.stringify(rest));
  return [...bySeries].flatMap(([labels, ofOne]) => {
    const buckets = ofOne.filter((line) => line.name === `${name}_bucket`);
    const [sum, count] = ["_sum", "_count"].map((suffix) =>
      ofOne.filter((line) => line.name === name + suffix),
    );
    const bounds = buckets.map((line) => Number(line.labels.le?.replace("Inf", "Infinity")));
    const isRising = (numbers: readonly number[], least: number) =>
      numbers.every((number, index) => index === 0 || number - (numbers[index - 1] ?? 0) >= least);
    const isSound =
      sum?.length === 1 &&
      count?.length === 1 &&
      bounds.at(-1) === Number.POSITIVE_INFINITY &&
      isRising(bounds, Number.MIN_VALUE) &&
      isRising(
        buckets.map((line) => line.value),
        0,
      ) &&
      buckets.at(-1)?.value === count[0]?.value;
    return isSound ? [] : [`${name}${labels} is no histogram`];
  });
}
