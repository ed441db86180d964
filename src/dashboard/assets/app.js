// The dashboard's only script of its own: it refreshes the page, and adds the keyboard and the copy buttons. Every page works
// without it.
const refreshMs = 5000;
const main = document.querySelector("#main[hx-get]");
const live = document.querySelector("#live");
let isPaused = false;
let lostSince; // the last refresh had no answer

/** Rows do not move under somebody who selects, types or reads a dialog. */
function isBusy() {
  const { activeElement } = document;
  return (
    document.hidden ||
    isPaused ||
    document.querySelector("#main tbody :checked, dialog[open], .pop:popover-open") !== null ||
    (activeElement?.closest("#main") && activeElement.matches("input, textarea, select")) ||
    !(getSelection()?.isCollapsed ?? true)
  );
}

function showLive() {
  if (!live) return;
  live.hidden = false;
  const isHeld = isPaused || isBusy();
  const state = isPaused ? "Paused" : isHeld ? "On hold" : "Live, every 5 s";
  live.lastElementChild.textContent = lostSince ? `No answer since ${lostSince}` : state;
  live.firstElementChild.hidden = isHeld || lostSince !== undefined;
}

/** What is shown stays, and says that it is old: that is more than a page about the error has. */
function showLost() {
  lostSince ??= `${new Date().toISOString().slice(11, 19)} UTC`;
  showLive();
  if (document.querySelector("#lost, #error")) return;
  const message = document.createElement("div");
  message.id = "lost";
  message.className = "truth is-alarm";
  message.role = "alert";
  const text = document.createElement("p");
  const at = document.querySelector("#at")?.textContent;
  text.textContent = `No answer since ${lostSince}. This page shows how things were at ${at}, and tries again every 5 s.`;
  message.append(document.createElement("div"));
  message.firstChild.append(text);
  main.prepend(message);
}

if (main) {
  const refresh = () => {
    showLive();
    if (!isBusy()) htmx.trigger(main, "refresh");
  };
  // The server marks an error that is to be shown in the place of the page: it would only be as slow again.
  main.addEventListener("htmx:after:request", (event) => {
    const { status, headers } = event.detail.ctx.response;
    if (status < 500 || headers.has("hx-reswap")) {
      lostSince = undefined;
      return showLive();
    }
    event.preventDefault();
    showLost();
  });
  main.addEventListener("htmx:error", showLost);
  showLive();
  setInterval(refresh, refreshMs);
  document.addEventListener("visibilitychange", refresh);
  for (const event of ["change", "focusin", "focusout", "toggle"])
    document.addEventListener(event, () => setTimeout(showLive), true);
}

function rows() {
  return [...document.querySelectorAll("#main tbody tr:has(a)")];
}

function moveRow(step) {
  const all = rows();
  const at = all.findIndex((row) => row.contains(document.activeElement));
  const row = all[Math.min(Math.max(at + step, 0), all.length - 1)];
  row?.querySelector("a")?.focus();
}

const keys = {
  "/": () => document.querySelector("input[type=search]")?.focus(),
  "?": () => document.querySelector("#keys-help")?.togglePopover(),
  j: () => moveRow(1),
  k: () => moveRow(-1),
  x: () => document.activeElement?.closest("tr")?.querySelector("[type=checkbox]")?.click(),
  r: () => {
    isPaused = !isPaused;
    showLive();
  },
};

let isGoing = false;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
  const link = isGoing && document.querySelector(`.nav a[data-key="${CSS.escape(event.key)}"]`);
  isGoing = event.key === "g" && !isGoing;
  if (link) link.click();
  else if (!isGoing && Object.hasOwn(keys, event.key)) keys[event.key]();
  else return;
  event.preventDefault();
});

// A dialog that the server has opened becomes modal. Escape closes it, and its page knows where the focus was before.
const dialog = document.querySelector("dialog[open]");
if (dialog) {
  dialog.close();
  dialog.showModal();
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    dialog.querySelector("[data-close]").click();
  });
}

// A button that copies stays hidden without this script.
function showCopyButtons() {
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
}
showCopyButtons();
document.addEventListener("htmx:after:swap", showCopyButtons);
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  const text = button && document.getElementById(button.dataset.copy)?.textContent;
  if (!text) return;
  await navigator.clipboard.writeText(text);
  button.textContent = "Copied";
  setTimeout(() => {
    button.textContent = "Copy";
  }, 2000);
});

// Asks before a form that cannot be undone.
document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
});
