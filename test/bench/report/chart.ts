// A line chart as SVG: one line for each system over the number of processed jobs, with a logarithmic axis.

export interface Line {
  name: string;
  points: readonly { x: number; y: number }[];
}

const width = 820;
const height = 440;
const frame = { left: 76, right: 660, top: 56, bottom: 384 };
const colors = ["#0b6e4f", "#c8553d", "#2f6690", "#8a5a9e", "#b38a1d"];

export function lineChart(options: {
  title: string;
  xTitle: string;
  yTitle: string;
  lines: readonly Line[];
}): string {
  const points = options.lines.flatMap((line) => line.points).filter(({ y }) => y > 0);
  const xMost = Math.max(1, ...points.map(({ x }) => x));
  const low = Math.floor(Math.log10(Math.min(1, ...points.map(({ y }) => y))));
  const high = Math.ceil(Math.log10(Math.max(1, ...points.map(({ y }) => y))));
  const xOf = (x: number) => frame.left + (x / xMost) * (frame.right - frame.left);
  const yOf = (y: number) =>
    frame.bottom - ((Math.log10(y) - low) / Math.max(1, high - low)) * (frame.bottom - frame.top);
  const decades = Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index));
  const parts = [
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    text(frame.left, 28, options.title, { size: 17, weight: 600 }),
    text(frame.left, 46, options.yTitle, { size: 12 }),
    text((frame.left + frame.right) / 2, 426, options.xTitle, { size: 12, anchor: "middle" }),
    ...decades.flatMap((value) => [
      `<line x1="${frame.left}" x2="${frame.right}" y1="${fixed(yOf(value))}" y2="${fixed(yOf(value))}" stroke="#dddddd"/>`,
      text(frame.left - 8, yOf(value) + 4, value.toLocaleString("en"), { size: 12, anchor: "end" }),
    ]),
    ...ticks(xMost).map((x) =>
      text(xOf(x), frame.bottom + 20, x.toLocaleString("en"), { size: 12, anchor: "middle" }),
    ),
    ...labelled(options.lines, { xOf, yOf }).flatMap(({ line, labelY }, index) =>
      drawn(line, { color: colors[index % colors.length] ?? "#000000", labelY, xOf, yOf }),
    ),
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif" role="img">
<title>${escaped(options.title)}</title>
${parts.join("\n")}
</svg>
`;
}

/** Some round numbers from 0 on. */
function ticks(most: number): number[] {
  const rough = most / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((times) => times * power >= rough) ?? 10);
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, index) => index * step);
}

interface Scale {
  xOf(x: number): number;
  yOf(y: number): number;
}

/** Places each label at the end of its line, so that no two overlap. */
function labelled(lines: readonly Line[], { xOf, yOf }: Scale) {
  const apart = { x: 130, y: 16 };
  const placed = lines.flatMap((line) => {
    const last = line.points.at(-1);
    return last ? [{ line, labelX: xOf(last.x), labelY: yOf(last.y) }] : [];
  });
  const sorted = placed.toSorted((a, b) => a.labelY - b.labelY);
  sorted.forEach((label, index) => {
    const near = sorted.slice(0, index).filter(({ labelX }) => Math.abs(labelX - label.labelX) < apart.x);
    label.labelY = Math.max(label.labelY, ...near.map(({ labelY }) => labelY + apart.y));
  });
  return placed;
}

function drawn({ name, points }: Line, at: { color: string; labelY: number } & Scale): string[] {
  const places = points.filter(({ y }) => y > 0).map(({ x, y }) => `${fixed(at.xOf(x))},${fixed(at.yOf(y))}`);
  const lastX = at.xOf(points.at(-1)?.x ?? 0);
  return [
    `<polyline points="${places.join(" ")}" fill="none" stroke="${at.color}" stroke-width="2.5"/>`,
    ...places.map((place) => {
      const [x, y] = place.split(",");
      return `<circle cx="${x}" cy="${y}" r="3.5" fill="${at.color}"/>`;
    }),
    text(lastX + 10, at.labelY + 4, name, { size: 13, weight: 600, fill: at.color }),
  ];
}

function text(
  x: number,
  y: number,
  content: string,
  style: { size: number; weight?: number; anchor?: string; fill?: string },
): string {
  const { size, weight = 400, anchor = "start", fill = "#333333" } = style;
  return `<text x="${fixed(x)}" y="${fixed(y)}" font-size="${size}" font-weight="${weight}" text-anchor="${anchor}" fill="${fill}">${escaped(content)}</text>`;
}

function fixed(value: number): string {
  return value.toFixed(1);
}

function escaped(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
