// Keys in their order. A verdict goes with the class and the images that were shown when its key was pressed: the server
// takes none on others, and reports it.
import { isText, isTaken, meaningOf } from "../web/keyboard.js";
import { alsoInSight, emitKey, handleKeys, isBusy, isLost, keysLeft, queueKey, settled, sight, view } from "../web/view.js";
import { actionOf, checkHandlers, keyOf, NAMED, REPEATED } from "./actions.js";
import { carryOut, isWaiting, onScreen, startChecking, stopWaiting, takeAll } from "./all_clean.js";
import { magnify } from "./magnifier.js";
import { discardNote, tab } from "./drafts.js";
import { scrollText, tileBeside } from "./overlays.js";
import { box, drawProposal, isReady, moveBox, moveImage, pan, takeBox, zoomBy, zoomTo } from "./viewer.js";

const LOST = `cleanset-lost-keys ${location.pathname}`; // of this person, as another may continue in the same tab

export const HIT = "hit"; // what is sent for a click on a class that the search has found

const mode = () => view()?.dataset.mode ?? "";
const isTyping = () => mode() === "search" || mode() === "note";
export const field = () => document.querySelector(".q-dialog input, .q-dialog textarea");
// A key answers the box and the reasons that had been in sight, too.
const reasonOf = (card) => `reason ${card.dataset.card}`;
alsoInSight(() => {
  const reasons = [...document.querySelectorAll("#view [data-card]")].map((card) => [reasonOf(card), card.dataset.likeliest]);
  return { box: box()?.join(",") ?? null, ...Object.fromEntries(reasons) };
});

// Whether the key that waits has to wait on: the line about a lost connection covers images that it is about.
const isHeld = () => isBusy() || isLost();

// Queue a key, or what a click means. `more`: the card that it is about; `button`: the one that was clicked.
export function press(name, more = {}, modifiers = {}, button = null) {
  const at = { ...sight(["box"], button), answered: Number(view().dataset.pressed) };
  const key = { name, more, at, shift: false, ctrl: false, repeat: false };
  if (name === keyOf("take_rest")) key.onScreen = onScreen();
  queueKey({ ...key, ...modifiers });
  work();
}

// Reject an image for the reason that its card had shown.
export const guess = (card) => press("guess", { card: card.dataset.card, reason: settled(reasonOf(card)) ?? "" });

export function work() {
  handleKeys(handle, () => (isTyping() ? field() : isReady()));
  carryOut(isHeld());
}
startChecking(isHeld);

// What the browser does by itself, or sends as something else than the key. If one returns false, the key is sent.
const HANDLERS = {
  stop_waiting: stopWaiting,
  take_rest: (key) => takeAll(key, send),
  reject_by_guess: (key) => key.card ? send(key, { ...key.card, key: "guess" }) : false,
  reject_for_reason: (key) => send(key, { key: "reason", reason: key.name }),
  magnify: () => false, // when it goes down, or there is no image under the mouse
  zoom: ({ name }) => zoomBy(name === "-" ? -1 : 1),
  zoom_to: ({ name }) => zoomTo(Number(name)),
  move_image: ({ name }) => moveImage(name),
  pan: () => false, // when it goes down
  next_box: () => takeBox(),
  move_box: (key) => moveBox(key, "both"),
  move_far_edge: (key) => moveBox(key, "far"),
  move_near_edge: (key) => moveBox(key, "near"),
  draw_proposal: drawProposal,
  focus_tile: (key) => send(key, { key: "focus", card: tileBeside(key.name) }),
  scroll_text: ({ name }) => scrollText(name),
};
checkHandlers(HANDLERS);

function handle(typed) {
  if (typed.name === HIT && mode() !== "search") return; // the click before has left the search
  if (isTyping() && typed.name !== HIT) {
    typeInto(field(), typed);
    return;
  }
  const key = { ...typed, name: nameIn(mode(), typed) };
  const binding = (mode() === "class" && isWaiting() && actionOf("waiting", key)) || actionOf(mode(), key);
  if (binding?.inBrowser && HANDLERS[binding.action](key) !== false) return;
  if (!key.ctrl) send(key);
}

// What a key is called in a mode: the digit at its place, if what the layout types there does nothing.
function nameIn(inMode, { name, code, shift, ctrl }) {
  const meaning = meaningOf({ key: name, code, shiftKey: shift });
  const does = (each) => actionOf(inMode, { name: each, shift, ctrl });
  return meaning.digit !== null && !does(meaning.name) && does(meaning.digit) ? meaning.digit : meaning.name;
}

function send(key, more = {}) {
  emitKey({ key: key.name, ...key.at, tab, box: box(), ...key.more, ...more });
}

// What was typed before the field was there.
function typeInto(element, key) {
  if (key.name === "Escape" || (key.name === "Enter" && !key.shift)) {
    if (key.name === "Escape" && mode() === "note") discardNote();
    send(key, { text: element.value });
    return;
  }
  element.focus();
  const text = key.name === "Enter" ? "\n" : isText(key.name) && !key.ctrl ? key.name : "";
  if (text) element.setRangeText(text, element.selectionStart, element.selectionEnd, "end");
  else if (key.name === "Backspace" && element.selectionStart > 0) {
    element.setRangeText("", element.selectionStart - 1, element.selectionEnd, "end");
  } else {
    element.dispatchEvent(new KeyboardEvent("keydown", { key: key.name, bubbles: true }));
    return;
  }
  element.dispatchEvent(new Event("input", { bubbles: true }));
}

addEventListener(
  "keydown",
  (event) => {
    if (!event.isTrusted || !view() || event.metaKey || event.altKey || event.isComposing) return;
    if (!isTaken(event, NAMED)) return;
    const pressesButton = event.key === "Enter" || event.key === " ";
    if (pressesButton && event.target.closest("button, .q-item")) return; // the browser makes a click of it
    if (isTyping() && !isBusy() && event.target.closest(".q-dialog")) {
      const leaves = event.key === "Escape" || (event.key === "Enter" && !event.shiftKey);
      if (!leaves) return; // the browser types it
    } else if (event.ctrlKey && !actionOf(mode(), { name: `Ctrl+${event.key}` })) return;
    event.preventDefault();
    if (isTyping()) event.stopImmediatePropagation(); // the dialog would close by itself
    const held = actionOf(mode(), { name: nameIn(mode(), { name: event.key, code: event.code, shift: event.shiftKey }) });
    if (held?.action === "pan") {
      holdPan(true);
      return;
    }
    if (held?.action === "magnify" && held.inBrowser && !isBusy() && magnify(true)) return;
    // a key held down steps as fast as it is answered, and gives one verdict
    if (event.repeat && (isBusy() || !REPEATED.has(event.key))) return;
    press(event.key, {}, { shift: event.shiftKey, ctrl: event.ctrlKey, repeat: event.repeat, code: event.code, card: cardAt(event) });
  },
  true,
);
let isPanHeld = false;
function holdPan(isHeld) {
  if (isHeld !== isPanHeld) pan(isHeld);
  isPanHeld = isHeld;
}
addEventListener("blur", () => holdPan(false));
addEventListener("keyup", (event) => {
  if (event.key === keyOf("pan")) holdPan(false);
  const glass = keyOf("magnify");
  if (event.code === `Key${glass.toUpperCase()}` || event.key.toLowerCase() === glass) magnify(false);
});

// The card that has the digit of a key on the screen, and the reason that it had shown.
function cardAt(event) {
  const card = document.querySelectorAll("#view [data-card]")[Number(meaningOf(event).digit ?? 0) - 1];
  return card ? { card: card.dataset.card, reason: settled(reasonOf(card)) ?? "" } : null;
}

// --- keys that a lost connection takes along: the page is loaded again ----------------------------

addEventListener("pagehide", () => {
  const count = keysLeft() + (isWaiting() ? 1 : 0);
  if (count > 0) sessionStorage.setItem(LOST, count);
});

export function tellLost() {
  const count = sessionStorage.getItem(LOST);
  sessionStorage.removeItem(LOST);
  if (count !== null) press("lost", { card: count });
}
