// Writes the Prometheus text format 0.0.4. No library for it runs without Node, and it is small.

export interface Family {
  /** Contains the base unit, and ends in `_total` if the value only rises. */
  name: string;
  help: string;
  type: "counter" | "gauge" | "histogram";
  samples: readonly Sample[];
}

export interface Sample {
  labels?: Labels;
  value: number;
  /** The suffix of a histogram's sample: bucket, sum or count. */
  suffix?: "_bucket" | "_sum" | "_count";
}

export type Labels = Readonly<Record<string, string | number>>;

export const contentType = "text/plain; version=0.0.4; charset=utf-8";

/** A family without samples is left out. */
export function toText(families: readonly Family[]): string {
  return families
    .filter(({ samples }) => samples.length > 0)
    .map(({ name, help, type, samples }) =>
      [
        `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}\n`,
        `# TYPE ${name} ${type}\n`,
        ...samples.map(
          ({ labels = {}, value, suffix = "" }) => `${name}${suffix}${textOf(labels)} ${value}\n`,
        ),
      ].join(""),
    )
    .join("");
}

/** Each of `buckets` counts the jobs between two bounds. The last one counts those above all bounds. */
export function histogramSamples(
  labels: Labels,
  { bounds, buckets, sum }: { bounds: readonly number[]; buckets: readonly number[]; sum: number },
): Sample[] {
  let upTo = 0;
  const cumulative = [...bounds, "+Inf"].map((bound, index): Sample => {
    upTo += buckets[index] ?? 0;
    return { labels: { ...labels, le: bound }, value: upTo, suffix: "_bucket" };
  });
  return [...cumulative, { labels, value: sum, suffix: "_sum" }, { labels, value: upTo, suffix: "_count" }];
}

function textOf(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(String(value))}"`);
  return pairs.length > 0 ? `{${pairs.join(",")}}` : "";
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

export function gauge(name: string, help: string, value: number): Family {
  return { name, help, type: "gauge", samples: [{ value }] };
}
