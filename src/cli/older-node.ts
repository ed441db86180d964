// Adds what the API uses and Node 20 lacks. The Worker has both.

export function addWhatNode20Lacks(): void {
  Map.groupBy ??= groupBy;
  Promise.withResolvers ??= withResolvers;
}

function groupBy<Key, Item>(items: Iterable<Item>, toKey: (item: Item, index: number) => Key) {
  const groups = new Map<Key, Item[]>();
  let index = 0;
  for (const item of items) {
    const key = toKey(item, index++);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

function withResolvers<T>() {
  let resolve: (value: T | PromiseLike<T>) => void = () => {};
  let reject: (reason?: unknown) => void = () => {};
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}
