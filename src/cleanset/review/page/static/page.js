// The page in the browser. What is shown and what is saved is for the server to decide: nothing here
// changes a verdict on the page.
import { announce, isBusy, keepFocusAtClicks, loadAhead, view, whenDrawn } from "../web/view.js";
import { keyOf } from "./actions.js";
import { follow } from "./drafts.js";
import { layOut } from "./grid.js";
import { field, guess, HIT, press, tellLost, work } from "./keys.js";
import { pan, restoreRatio, sendKeysTo, showViewer, takeBox } from "./viewer.js";

sendKeysTo({ press, work });

// --- the browser's Back: to the class before, or out of what is over the class ---------------

let visiting = null;
const classInAddress = () => new URLSearchParams(location.search).get("class");

function noteClass() {
  const { classKey } = view().dataset;
  if (visiting !== null && classKey !== visiting && isBusy()) return;
  visiting = null;
  if (classKey === (classInAddress() ?? "")) return;
  const address = classKey ? `?class=${encodeURIComponent(classKey)}` : "./";
  if (noteClass.begun) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}

addEventListener("popstate", () => {
  const classKey = classInAddress();
  if (!view() || !classKey || classKey === view().dataset.classKey) return;
  if (document.querySelector("#overlay, .q-dialog")) {
    history.pushState(null, "", `?class=${encodeURIComponent(view().dataset.classKey)}`);
    press(keyOf("close"));
  } else {
    visiting = classKey;
    press("visit", { card: classKey });
  }
});

// --- the keyboard's focus, which every new rendering of the page would lose --------------------

let focused = null; // a selector

addEventListener("focusin", ({ target }) => {
  const card = target.closest("[data-card]");
  const button = target.closest("button[data-key]");
  focused = card ? "[data-card].focus" : button ? `button[data-key="${CSS.escape(button.dataset.key)}"]` : null;
  if (card && card.dataset.card !== view().dataset.focus) press("focus", { card: card.dataset.card });
});
addEventListener("pointerdown", () => (focused = null));
keepFocusAtClicks("[data-card], [data-choice], [data-choose], [data-tile], [data-pan], [data-visit]");

// After each answer, focus is in what is over the class, or where it was, or on the card of the next image.
addEventListener("keydown", () => (focused ??= "[data-card].focus"), true);

function restoreFocus() {
  const overlay = document.querySelector("#overlay");
  if (overlay && !document.activeElement.closest("#overlay, #panel, #below")) overlay.focus({ preventScroll: true });
  if (document.activeElement !== document.body || focused === null) return;
  const usable = (selector) => [...document.querySelectorAll(selector)].find((each) => !each.closest("[inert]"));
  (usable(focused) ?? usable("[data-card].focus"))?.focus({ preventScroll: true });
}

// --- what is read aloud: another class, a saved answer, a notice ----------------------------------

let heard = { classKey: null, verdicts: {}, notice: "" };

function readAloud() {
  const text = (selector) => document.querySelector(selector)?.textContent.replace(/\s+/g, " ").trim() ?? "";
  const verdicts = Object.fromEntries([...document.querySelectorAll("[data-card]")].map((card) => [card.dataset.card, card.ariaLabel]));
  const now = { classKey: view().dataset.classKey, verdicts, notice: text(".notice") };
  const isNew = now.classKey !== heard.classKey;
  const changed = Object.keys(verdicts).filter((id) => !isNew && id in heard.verdicts && verdicts[id] !== heard.verdicts[id]);
  const parts = changed.map((id) => verdicts[id]);
  if (isNew) parts.push(`${text("#view h1")}. ${text("#view .state")}`);
  if (now.notice !== heard.notice) parts.push(now.notice);
  if (parts.join("")) announce(parts.join(". "));
  heard = now;
}

// --- cards that are below ----------------------------------------------------------------------

function countBelow() {
  const more = document.querySelector("#more");
  const cards = document.querySelector("#cards");
  if (!more || !cards) return;
  const { bottom } = cards.getBoundingClientRect();
  const hidden = [...cards.children].filter((card) => card.getBoundingClientRect().top > bottom - 24).length;
  more.hidden = hidden === 0;
  const text = `▼ ${hidden} more`;
  if (more.textContent !== text) more.textContent = text;
}

// how far the cards of a class are scrolled, which every new rendering of the page would lose
let scrolled = { classKey: null, top: 0 };
const noteScroll = (cards) => (scrolled = { classKey: view().dataset.classKey, top: cards.scrollTop });
addEventListener(
  "scroll",
  ({ target }) => {
    if (target.id === "cards") noteScroll(target);
    countBelow();
  },
  true,
);
addEventListener("resize", () => {
  layOut();
  countBelow();
});

function restoreScroll() {
  const cards = document.querySelector("#cards");
  if (cards && scrolled.classKey === view().dataset.classKey) cards.scrollTop = scrolled.top;
}

// --- clicks ------------------------------------------------------------------------------------

addEventListener("click", (event) => {
  const button = event.target.closest("[data-key]");
  const card = event.target.closest("[data-card]");
  const choice = event.target.closest("[data-choice]");
  const tile = event.target.closest("[data-tile]");
  const chosen = event.target.closest("[data-choose]");
  const visited = event.target.closest("[data-visit]");
  const hit = event.target.closest("[data-hit]");
  const panning = event.target.closest("[data-pan]");
  if (panning) {
    panning.setAttribute("aria-pressed", String(panning.ariaPressed !== "true"));
    pan(panning.ariaPressed === "true");
  } else if (choice) takeBox(choice.dataset.choice);
  else if (tile) press("focus", { card: tile.dataset.tile });
  else if (chosen) press("choose", { card: chosen.dataset.choose });
  else if (hit) press(HIT, { card: hit.dataset.hit });
  else if (visited) press("visit", { card: visited.dataset.visit });
  else if (button) press(button.dataset.key, {}, {}, button);
  else if (event.target.closest("#more")) document.querySelector("#cards").scrollBy({ top: innerHeight / 2 });
  else if (card && event.shiftKey) guess(card);
  else if (card) press("focus", { card: card.dataset.card });
});
addEventListener("dblclick", (event) => {
  if (event.target.closest("[data-card]")) press(keyOf("toggle_zoom"));
  else if (event.target.closest("[data-tile]")) press(keyOf("go_to_tile"));
});

// --- images that come next, once what is looked at is there ----------------------------------------

function loadNext() {
  const shown = [...document.querySelectorAll("#view img, #overlay img")];
  if (shown.every((image) => image.complete)) loadAhead(document.querySelector("#ahead")?.dataset.images);
}
document.addEventListener("load", loadNext, true);

// --- what the server shows ---------------------------------------------------------------------

let focusBefore = null;
let scrolledBefore = null;
whenDrawn(() => {
  layOut();
  showViewer(document.querySelector("#overlay img[data-look]"));
  restoreRatio();
  noteClass();
  if (!noteClass.begun) tellLost();
  noteClass.begun = true;
  restoreScroll();
  const focus = document.querySelector("[data-card].focus");
  const { scrolledAt } = view().dataset;
  if (focus && (focus.dataset.card !== focusBefore || scrolledAt !== scrolledBefore)) {
    focus.scrollIntoView({ block: "nearest" });
    noteScroll(focus.parentElement); // the event would come after the next drawing
  }
  [focusBefore, scrolledBefore] = [focus?.dataset.card, scrolledAt];
  document.querySelector("[data-tile].focus")?.scrollIntoView({ block: "nearest" });
  restoreFocus();
  readAloud();
  countBelow();
  loadNext();
  work();
  follow(press, isBusy, field());
});
