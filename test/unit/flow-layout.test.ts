// Where the boxes of a flow's graph lie: no two overlap, and every line goes to the right.
import { describe, expect, test } from "vitest";
import { box, type GraphNode, layersOf, layOut } from "../../src/dashboard/pages/flow/layout.ts";

const node = (id: string, ...after: string[]): GraphNode => ({ id, after });
const checkout = [
  ...[node("stock"), node("fraud"), node("charge", "stock", "fraud")],
  ...[node("invoice", "charge"), node("courier", "charge"), node("receipt", "invoice")],
  ...[node("notify", "courier"), node("close", "receipt", "notify", "invoice")],
];
const wide = Array.from({ length: 100 }, (_, n) => node(`part-${n}`));
const graphs: Record<string, GraphNode[]> = {
  nothing: [],
  "one job": [node("a")],
  checkout,
  "jobs that are listed before what they wait for": checkout.toReversed(),
  "a wide one": [
    node("start"),
    ...wide.map(({ id }) => node(id, "start")),
    node("end", ...wide.map(({ id }) => id)),
  ],
  "one in which all wait for all before": Array.from({ length: 60 }, (_, n) =>
    node(`n${n}`, ...Array.from({ length: n }, (__, before) => `n${before}`)),
  ),
};

test("a layer is the longest path to it", () => {
  expect(Object.fromEntries(layersOf(checkout))).toEqual({
    ...{ stock: 0, fraud: 0, charge: 1, invoice: 2, courier: 2, receipt: 3, notify: 3, close: 4 },
  });
  expect(Object.fromEntries(layersOf([node("a", "b"), node("b", "a"), node("c", "c")]))).toEqual({
    ...{ a: 0, b: 0, c: 0 },
  });
});

describe.each(Object.entries(graphs))("the layout of %s", (_, nodes) => {
  const { boxes, lines, width, height } = layOut(nodes);

  test("has every box once, inside the picture, and no two overlap", () => {
    const places = [...boxes.values()];
    expect(places).toHaveLength(nodes.length);
    for (const { x, y } of places) {
      expect(x).toBeGreaterThanOrEqual(0);
      expect(y).toBeGreaterThanOrEqual(0);
      expect(x + box.width).toBeLessThanOrEqual(width);
      expect(y + box.height).toBeLessThanOrEqual(height);
    }
    const overlaps = places.filter((a, index) =>
      places.slice(index + 1).some((b) => a.x === b.x && Math.abs(a.y - b.y) < box.height),
    );
    expect(overlaps).toEqual([]);
  });

  test("has every line, and each goes only to the right", () => {
    expect(lines.map(({ from, to }) => `${from} ${to}`).toSorted()).toEqual(
      nodes.flatMap(({ id, after }) => after.map((from) => `${from} ${id}`)).toSorted(),
    );
    for (const { points } of lines) {
      const xs = points.map(({ x }) => x);
      expect(xs).toEqual(xs.toSorted((a, b) => a - b));
    }
  });
});

test("a line that passes a layer runs behind no box of it", () => {
  const { boxes, lines } = layOut(checkout);
  const long = lines.find(({ from, to }) => from === "invoice" && to === "close");
  const [, entry] = long?.points ?? [];
  for (const id of ["receipt", "notify"]) {
    const top = boxes.get(id)?.y ?? 0;
    const isInside = entry !== undefined && entry.y > top && entry.y < top + box.height;
    expect([id, isInside]).toEqual([id, false]);
  }
  expect(long?.points).toHaveLength(4);
});
