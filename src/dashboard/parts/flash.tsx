// The message after an action: what was done, or why it was not. It is shown once, on the page that the action leads to.

export interface Flash {
  kind: "done" | "failed";
  text: string;
}

const maxCharacters = 500;

/** As the value of a cookie. The text is shortened: a cookie has at most 4 kB. */
export function encodeFlash({ kind, text }: Flash): string {
  return encodeURIComponent(JSON.stringify([kind, text.slice(0, maxCharacters).toWellFormed()]));
}

/** Anything that is not a message is ignored. */
export function decodeFlash(value: string | undefined): Flash | undefined {
  try {
    const [kind, text] = JSON.parse(decodeURIComponent(value ?? ""));
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
