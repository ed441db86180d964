// The search line of a list.
import type { Child } from "hono/jsx";

interface SearchLineProps {
  path: string;
  label: string;
  value: string;
  placeholder: string;
  /** Offered while somebody types. */
  hints?: readonly string[];
  /** What could not be understood, as sentences. */
  faults: readonly string[];
  /** Chips that narrow the search. */
  children?: Child;
}

export function SearchLine({
  path,
  label,
  value,
  placeholder,
  hints = [],
  faults,
  children,
}: SearchLineProps) {
  return (
    <>
      <form class="search" role="search" action={path}>
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <circle cx="7" cy="7" r="4.5" />
          <path d="M10.5 10.5 14 14" />
        </svg>
        <label class="sr" for="q">
          {label}
        </label>
        <input
          {...{ id: "q", name: "q", type: "search", value, placeholder, autocomplete: "off" }}
          spellcheck={false}
          list={hints.length > 0 ? "hints" : undefined}
          aria-invalid={faults.length > 0 ? "true" : undefined}
          aria-describedby={faults.length > 0 ? "q-faults" : undefined}
        />
        {hints.length > 0 ? (
          <datalist id="hints">
            {hints.map((hint) => (
              <option value={hint} />
            ))}
          </datalist>
        ) : null}
        <kbd>/</kbd>
        <button class="btn" type="submit">
          Search
        </button>
      </form>
      {children}
      {faults.length > 0 ? (
        <div class="pad t-dead" id="q-faults" role="alert">
          {faults.map((fault) => (
            <p>{fault}</p>
          ))}
        </div>
      ) : null}
    </>
  );
}
