// The message after an action: what was done, or why it was not. It is shown once, on the page that the action leads to.

export interface Flash {
  kind: "done" | "failed";
  text: string;
}

/** A cookie has at most 4 kB, and a character may need 12 bytes of it. */
const maxBytes = 3_500;

/** As the value of a cookie, before it is escaped. A long text is cut off. */
export function encodeFlash({ kind, text }: Flash): string {
  const value = JSON.stringify([kind, text.toWellFormed()]);
  const bytes = encodeURIComponent(value).length;
  if (bytes <= maxBytes) return value;
  return encodeFlash({ kind, text: text.slice(0, Math.floor((text.length * maxBytes) / bytes) - 1) });
}

/** Anything that is not a message is ignored. */
export function decodeFlash(value: string | undefined): Flash | undefined {
  try {
    const [kind, text] = JSON.parse(value ?? "");
    if ((kind === "done" || kind === "failed") && typeof text === "string") return { kind, text };
  } catch {}
  return undefined;
}

export function FlashMessage({ kind, text }: Flash) {
  return (
    <div class={`truth${kind === "failed" ? " is-alarm" : ""}`} role={kind === "failed" ? "alert" : "status"}>
      <div>
        <p>{text}</p>
      </div>
    </div>
  );
}
