// The menu: a link, an icon and a key for each section.
import type { MenuCounts } from "../core/sql/menu-counts.ts";
import type { Section } from "./page.ts";
import { count } from "./parts/numbers.ts";

interface Entry {
  path: string;
  /** Pressed after `g`. */
  key: string;
  icon: string;
  /** A gap above it. */
  isFirstOfGroup?: boolean;
}

export const entries: Record<Section, Entry> = {
  Overview: { path: "/", key: "o", icon: "M2 9.5h3.5V14H2zM6.3 5.5h3.4V14H6.3zM10.5 2H14v12h-3.5z" },
  Jobs: { path: "/jobs", key: "j", icon: "M2.5 4h11M2.5 8h11M2.5 12h7" },
  "Dead letters": {
    path: "/dead-letters",
    key: "d",
    icon: "M2 4.5h12v8H2zM2 5l6 4.5L14 5M9.5 2.2 11 1M6.5 2.2 5 1",
  },
  Flows: { path: "/flows", key: "f", icon: "M2 3h4v3H2zM10 10h4v3h-4zM10 3h4v3h-4zM6 4.5h4M8 4.5v7h2" },
  Types: {
    path: "/types",
    key: "t",
    icon: "M3 3h4.5l6 6-4.5 4.5-6-6zM5.5 5.5v.1",
    isFirstOfGroup: true,
  },
  Queues: { path: "/queues", key: "q", icon: "M2 3h12v2.7H2zM2 6.7h12v2.7H2zM2 10.3h12V13H2z" },
  Schedules: {
    path: "/schedules",
    key: "s",
    icon: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2zM8 4.8V8l2.2 1.5",
  },
  Alarms: {
    path: "/alarms",
    key: "a",
    icon: "M4 11V7a4 4 0 0 1 8 0v4l1 1.2H3zM6.8 14h2.4",
    isFirstOfGroup: true,
  },
  Workers: {
    path: "/workers",
    key: "w",
    icon: "M8 2a6 6 0 0 1 6 6M13.6 10A6 6 0 0 1 8 14M6 13.6A6 6 0 0 1 6 2.4M8 6.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6z",
  },
  Keys: {
    path: "/keys",
    key: "k",
    icon: "M5 8a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM7.2 8.9 13.5 2.5M10.5 5.5l2 2",
    isFirstOfGroup: true,
  },
  Audit: { path: "/audit", key: "u", icon: "M3.5 2h9v12h-9zM6 5.5h4M6 8h4M6 10.5h2.5" },
};

interface NavProps {
  current: Section | undefined;
  /** Undefined if the page did not get as far as the database. */
  counts: MenuCounts | undefined;
}

export function Nav({ current, counts }: NavProps) {
  return (
    <nav class="nav" id="nav" aria-label="Main">
      <ul>
        {Object.entries(entries).map(([name, { path, key, icon, isFirstOfGroup }]) => (
          <li class={isFirstOfGroup ? "gap" : undefined}>
            <a href={path} data-key={key} aria-current={name === current ? "page" : undefined}>
              <svg viewBox="0 0 16 16" aria-hidden="true">
                <path d={icon} />
              </svg>
              {name}
            </a>
            {counts ? <Note section={name} counts={counts} /> : null}
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** It stands beside the link, so that the link has just its name. */
function Note({ section, counts: { dead, firing, silenced } }: { section: string; counts: MenuCounts }) {
  if (section === "Dead letters" && dead > 0) return <span class="nav-n">{count(dead)}</span>;
  if (section !== "Alarms") return null;
  if (firing > 0) return <span class="nav-n is-dead">{count(firing)} firing</span>;
  return silenced > 0 ? <span class="nav-n">{count(silenced)} silenced</span> : null;
}

/** The keyboard help. */
export function KeysHelp() {
  return (
    <div class="pop" id="keys-help" popover="auto" role="dialog" aria-label="Keyboard">
      <dl class="defs">
        {Object.entries(entries).map(([name, { key }]) => (
          <>
            <dt>
              <kbd>g</kbd> <kbd>{key}</kbd>
            </dt>
            <dd>{name}</dd>
          </>
        ))}
        {others.map(([key, what]) => (
          <>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </>
        ))}
      </dl>
    </div>
  );
}

const others = [
  ["/", "search"],
  ["j", "next row"],
  ["k", "previous row"],
  ["x", "select the row"],
  ["Enter", "open the row"],
  ["r", "pause and resume live updates"],
  ["?", "this list"],
] as const;
