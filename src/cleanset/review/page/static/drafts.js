// What is typed or drawn and not saved yet, kept by the browser for this tab and this person: a reload, a restart of the
// server or a lost connection takes none of it. Notes stay until a verdict saves them, boxes until the crop is left.
import { view } from "../web/view.js";
import { keyOf } from "./actions.js";

const KEY = `cleanset-drafts ${location.pathname}`;
const KINDS = { note: keyOf("write_note"), crop: keyOf("begin_crop") }; // by mode, the key that leads to it

const drafts = JSON.parse(sessionStorage.getItem(KEY) ?? "{}");
let open = null; // the name of the draft on the screen
const reopened = new Set();

const nameOf = (kind, image) => JSON.stringify([kind, view().dataset.classKey, image]);
const here = (kind) => nameOf(kind, view().dataset.focus);

function change(name, draft) {
  if (draft === null) delete drafts[name];
  else drafts[name] = draft;
  sessionStorage.setItem(KEY, JSON.stringify(drafts));
}

// The name that the server knows this tab by, also after it is loaded again. It is stored only while no page of the tab is
// open: a duplicate of the tab copies what is stored, and has steps of its own to undo.
const NAME = "cleanset-tab";
export const tab = sessionStorage.getItem(NAME) ?? `${Date.now()} ${Math.random()}`;
sessionStorage.removeItem(NAME);
addEventListener("pagehide", () => sessionStorage.setItem(NAME, tab));
addEventListener("pageshow", () => sessionStorage.removeItem(NAME)); // it may come back unchanged

export const keepBox = (box) => change(here("crop"), box && { box, isOpen: true });
export const keptBox = () => drafts[here("crop")]?.box ?? null;
export const discardNote = () => change(here("note"), null);

document.addEventListener("input", ({ target }) => {
  if (view()?.dataset.mode === "note" && target.matches(".q-dialog textarea")) {
    change(here("note"), { text: target.value, isOpen: true });
  }
});

// Keep what the class on the screen shows as unsaved, forget what is saved, and open what was left open by `press`.
export function follow(press, isBusy, field) {
  const { mode, classKey } = view().dataset;
  if (mode in KINDS) {
    const draft = drafts[here(mode)];
    if (open !== here(mode) && mode === "note") {
      if (!field) return; // it is drawn after the view
      if (draft && field.value !== draft.text) {
        field.value = draft.text;
        field.dispatchEvent(new Event("input", { bubbles: true }));
      }
    }
    open = here(mode);
    return;
  }
  if (isBusy()) return;
  if (open !== null && drafts[open]) change(open, drafts[open].text?.trim() ? { text: drafts[open].text } : null);
  open = null;
  for (const card of document.querySelectorAll("[data-card][data-unsaved]")) {
    change(nameOf("note", card.dataset.card), { text: card.dataset.unsaved });
  }
  for (const [name, { text, isOpen }] of Object.entries(drafts)) {
    const [kind, key, image] = JSON.parse(name);
    const shown = document.querySelector(`#view [data-image="${CSS.escape(image)}"]`);
    const card = shown?.closest("[data-card]");
    if (key !== classKey || mode !== "class" || !shown) continue;
    if (isOpen && reopened.has(name)) continue;
    if (isOpen) {
      reopen(shown, () => {
        if (reopened.has(name) || isBusy() || view().dataset.classKey !== key || view().dataset.mode !== "class") return;
        reopened.add(name);
        press("focus", { card: image });
        press(KINDS[kind]);
      });
    } else if (!card) continue;
    else if (card.dataset.verdict && !("unsaved" in card.dataset)) change(name, null);
    else if (!("unsaved" in card.dataset)) press("keep", { card: image, text });
  }
}

const reopen = (image, then) => image.decode().catch(() => {}).then(then);
