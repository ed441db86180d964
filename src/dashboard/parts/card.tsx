// Cards, definitions and the empty state.
import type { Child } from "hono/jsx";

interface CardProps {
  /** The id of the heading, unique on the page. */
  id: string;
  title: string;
  /** Beside the heading. */
  note?: Child;
  children?: Child;
}

export function Card({ id, title, note, children }: CardProps) {
  return (
    <section class="card" aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {note}
      </header>
      {children}
    </section>
  );
}

/** Entries whose value is undefined are left out. */
export function Definitions({ entries }: { entries: readonly (readonly [string, Child])[] }) {
  return (
    <dl class="defs pad">
      {entries.map(([name, value]) =>
        value === undefined ? null : (
          <>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </>
        ),
      )}
    </dl>
  );
}

/** Says what would be here and how to make one. */
export function Empty({ title, children, example }: { title: string; children?: Child; example?: string }) {
  return (
    <div class="card empty">
      <svg viewBox="0 0 24 24" aria-hidden="true">
        <path d="M2 7.5h7.6v8.3H22v4.7a1.5 1.5 0 0 1-1.5 1.5h-17A1.5 1.5 0 0 1 2 20.5z" fill="currentColor" />
        <path d="M14.4 15.8H22v4.7a1.5 1.5 0 0 1-1.5 1.5h-6.1z" fill="currentColor" opacity=".55" />
        <rect x="10.9" y="2" width="2.8" height="11.4" rx="1" fill="currentColor" />
      </svg>
      <h2>{title}</h2>
      <p>{children}</p>
      {example === undefined ? null : <Code label="Example" text={example} />}
    </div>
  );
}

/** Text exactly as it is. With an id it can be copied by a CopyButton. */
export function Code({ label, text, id }: { label: string; text: string; id?: string }) {
  return (
    <pre class="code" id={id} tabindex={0} role="group" aria-label={label}>
      {text}
    </pre>
  );
}

/** The script shows it: without a script there is nothing that could copy. */
export function CopyButton({ of }: { of: string }) {
  return (
    <button class="btn is-quiet push" type="button" data-copy={of} hidden>
      Copy
    </button>
  );
}
