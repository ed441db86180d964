// The word that somebody meant who has misspelt it.

const maxDistance = 3;

export function nearestTo(typed: string, words: readonly string[]): string | undefined {
  const ranked = words
    .map((word) => ({ word, distance: word.startsWith(typed) ? 1 : distanceOf(typed, word) }))
    .filter(({ word, distance }) => distance <= Math.min(maxDistance, Math.ceil(word.length / 2)))
    .sort((a, b) => a.distance - b.distance);
  return ranked[0]?.word;
}

/** How many letters have to be added, removed or replaced (Levenshtein). */
function distanceOf(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [index, letter] of [...from].entries()) {
    const next = [index + 1];
    for (const [at, other] of [...to].entries()) {
      const replaced = (row[at] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[at + 1] ?? 0) + 1, (next[at] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
