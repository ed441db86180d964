// Where the boxes and lines of a graph lie. A box stands in the layer after the last one that it waits for (the longest path).
// A line that passes a layer gets a place of its own there, so it does not run behind a box.

export interface GraphNode {
  id: string;
  /** Ids of other nodes. */
  after: readonly string[];
}

export interface Layout {
  width: number;
  height: number;
  /** The upper left corner of each box. */
  boxes: ReadonlyMap<string, Point>;
  /** `points`: from the right edge of one box to the left edge of another. */
  lines: readonly { from: string; to: string; points: readonly Point[] }[];
}

export interface Point {
  x: number;
  y: number;
}

export const box = { width: 172, height: 52 };
const gap = { x: 48, y: 16 };
const margin = 8;
/** What a line needs of a layer that it passes. */
const passing = 4;
/** Beyond this many, lines take the direct way: they would need more room than the boxes. */
const maxPassings = 400;

/** Nodes that wait for each other in a circle have layer 0. A flow has none. */
export function layersOf(nodes: readonly GraphNode[]): Map<string, number> {
  const layers = new Map<string, number>();
  const missing = new Map(nodes.map(({ id, after }) => [id, new Set(after).size]));
  const next = Map.groupBy(
    nodes.flatMap(({ id, after }) => [...new Set(after)].map((from) => ({ from, id }))),
    ({ from }) => from,
  );
  const free = nodes.filter(({ id }) => missing.get(id) === 0).map(({ id }) => id);
  for (const id of free) {
    const layer = layers.get(id) ?? 0;
    layers.set(id, layer);
    for (const { id: waiting } of next.get(id) ?? []) {
      layers.set(waiting, Math.max(layers.get(waiting) ?? 0, layer + 1));
      const left = (missing.get(waiting) ?? 0) - 1;
      missing.set(waiting, left);
      if (left === 0) free.push(waiting); // the loop comes to it
    }
  }
  for (const { id } of nodes) if (missing.get(id) !== 0) layers.set(id, 0);
  return layers;
}

/** A box, or the place of a line that passes. */
interface Item {
  key: string;
  height: number;
  before: readonly string[];
}

export function layOut(nodes: readonly GraphNode[]): Layout {
  const layers = layersOf(nodes);
  const layerOf = (id: string) => layers.get(id) ?? 0;
  const edges = nodes.flatMap(({ id, after }) => [...new Set(after)].map((from) => ({ from, to: id })));
  const passed = ({ from, to }: { from: string; to: string }) => layerOf(to) - layerOf(from) - 1;
  const isDirect = edges.reduce((sum, edge) => sum + Math.max(0, passed(edge)), 0) > maxPassings;
  const columns: Item[][] = [];
  const add = (layer: number, item: Item) => {
    columns[layer] ??= [];
    columns[layer].push(item);
  };
  for (const { id, after } of nodes) add(layerOf(id), { key: id, height: box.height, before: after });
  const routes = edges.map(({ from, to }) => {
    const via = Array.from({ length: isDirect ? 0 : Math.max(0, passed({ from, to })) }, (_, index) => {
      const layer = layerOf(from) + 1 + index;
      const key = `${from}>${to}>${layer}`;
      const before = [index === 0 ? from : `${from}>${to}>${layer - 1}`];
      add(layer, { key, height: passing, before });
      return { key, layer };
    });
    return { from, to, via };
  });
  const { middles, height } = place(columns);
  const left = (layer: number) => margin + layer * (box.width + gap.x);
  const middle = (key: string) => middles.get(key) ?? 0;
  return {
    width: left(columns.length) - gap.x + margin,
    height: height + 2 * margin,
    boxes: new Map(
      nodes.map(({ id }) => [id, { x: left(layerOf(id)), y: margin + middle(id) - box.height / 2 }]),
    ),
    lines: routes.map(({ from, to, via }) => ({
      ...{ from, to },
      points: [
        { x: left(layerOf(from)) + box.width, y: margin + middle(from) },
        ...via.flatMap(({ key, layer }) => [
          { x: left(layer), y: margin + middle(key) },
          { x: left(layer) + box.width, y: margin + middle(key) },
        ]),
        { x: left(layerOf(to)), y: margin + middle(to) },
      ],
    })),
  };
}

/** Each column is ordered by where the things before it lie, and stands in the middle. */
function place(columns: readonly (readonly Item[])[]): { middles: Map<string, number>; height: number } {
  const heightOf = (items: readonly Item[]) => items.reduce((sum, item) => sum + item.height + gap.y, -gap.y);
  const height = Math.max(0, ...columns.map(heightOf));
  const middles = new Map<string, number>();
  for (const items of columns) {
    const wanted = (item: Item) =>
      item.before.reduce((sum, key) => sum + (middles.get(key) ?? 0), 0) / Math.max(1, item.before.length);
    let top = (height - heightOf(items)) / 2;
    for (const item of items.toSorted((a, b) => wanted(a) - wanted(b))) {
      middles.set(item.key, top + item.height / 2);
      top += item.height + gap.y;
    }
  }
  return { middles, height };
}
