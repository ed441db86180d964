// The two views of dead letters.
import { deadUrl, type Filter } from "./filter.ts";

export function Views({ filter, current }: { filter: Filter; current: "groups" | "jobs" }) {
  const { fingerprint: _, ...grouped } = filter;
  const views = [
    ["groups", "Grouped", deadUrl("/dead-letters", grouped)],
    ["jobs", "One by one", deadUrl("/dead-letters/jobs", filter)],
  ] as const;
  return (
    <nav class="seg" aria-label="View">
      {views.map(([view, text, url]) => (
        <a href={url} aria-current={view === current ? "true" : undefined}>
          {text}
        </a>
      ))}
    </nav>
  );
}
