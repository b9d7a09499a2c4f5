// Keys in their order. Each is handled when the one before is answered, so that it means what the page
// shows then; none is dropped without a word. A verdict goes with the class and the images that were shown when
// its key was pressed: the server takes none on others, and says so.
import { emitKey, isUnanswered, secondsShown, view } from "../web/view.js";
import { actionOf, checkHandlers, keyOf, NAMED, REPEATED } from "./actions.js";
import { carryOut, isWaiting, onScreen, startChecking, stopWaiting, takeAll } from "./all_clean.js";
import { magnify } from "./magnifier.js";
import { discardNote, tab } from "./drafts.js";
import { scrollText, tileBeside } from "./overlays.js";
import { box, drawProposal, isReady, moveBox, moveImage, pan, takeBox, zoomBy, zoomTo } from "./viewer.js";

const LOST = "cleanset-lost-keys";

const waiting = [];

const mode = () => view()?.dataset.mode ?? "";
const isTyping = () => mode() === "search" || mode() === "note";
export const field = () => document.querySelector(".q-dialog input, .q-dialog textarea");
// Images that were shown since the class was opened. Every answer and every hint draws the view anew; the
// browser may take a moment for an image that was there before.
const shown = { classKey: "", images: new Set() };
const isThere = (image) => image.complete && image.naturalWidth > 0;
const seen = () =>
  [...document.querySelectorAll("#view img[data-image]")]
    .filter((image) => isThere(image) || (shown.classKey === view().dataset.classKey && shown.images.has(image.dataset.image)))
    .map((image) => image.dataset.image)
    .concat(box() ? ["box"] : []);

export const isBusy = () => isUnanswered() || waiting.length > 0;

// Queue a key, or what a click means. `more`: the card that it is about.
export function press(name, more = {}, modifiers = {}) {
  const { classKey, pressed } = view().dataset;
  const key = { name, more, seen: seen(), classKey, shown: secondsShown(), answered: Number(pressed), shift: false, ctrl: false, repeat: false };
  if (name === keyOf("take_rest")) key.onScreen = onScreen();
  waiting.push({ ...key, ...modifiers });
  work();
}

// Reject an image for the reason that its card shows.
export const guess = (card) => press("guess", { card: card.dataset.card, reason: card.dataset.likeliest });

// Go on with the next key, if the last is answered.
export function work() {
  while (waiting.length > 0 && !isUnanswered() && (isTyping() ? field() : isReady())) handle(waiting.shift());
  carryOut(isBusy());
}
startChecking(isBusy);

// What the browser does by itself, or sends as something else than the key. Where one returns false, the key is sent.
const HANDLERS = {
  stop_waiting: stopWaiting,
  take_rest: (key) => takeAll(key, send),
  reject_by_guess: (key) => key.digit?.card ? send(key, { ...key.digit, key: "guess" }) : false,
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
  if (isTyping()) {
    typeInto(field(), typed);
    return;
  }
  const isOverClass = mode() === "class";
  const name = isOverClass && typed.digit ? typed.digit.key : latin(typed);
  const key = { ...typed, name: /^[a-z]$/i.test(name) ? name.toLowerCase() : name }; // Caps Lock
  const binding = (isOverClass && isWaiting() && actionOf("waiting", key)) || actionOf(mode(), key);
  if (binding?.inBrowser && HANDLERS[binding.action](key) !== false) return;
  if (!key.ctrl) send(key);
}

// The letter at this place of a Latin keyboard, where another alphabet is typed; its other keys there, once a letter was.
let isForeign = false;
function latin({ name, code = "" }) {
  if (/^\p{L}$/u.test(name)) isForeign = !/^[a-z]$/i.test(name);
  return isForeign && /^Key[A-Z]$/.test(code) ? code.at(-1).toLowerCase() : name;
}

function send(key, more = {}) {
  const { name, seen, classKey, shown, answered } = key;
  emitKey({ key: name, seen, class_key: classKey, shown, answered, tab, box: box(), ...key.more, ...more });
}

// What was typed before the field was there.
function typeInto(element, key) {
  if (key.name === "Escape" || (key.name === "Enter" && !key.shift)) {
    if (key.name === "Escape" && mode() === "note") discardNote();
    send(key, { text: element.value });
    return;
  }
  element.focus();
  const text = key.name === "Enter" ? "\n" : [...key.name].length === 1 && !key.ctrl ? key.name : "";
  if (text) element.setRangeText(text, element.selectionStart, element.selectionEnd, "end");
  else if (key.name === "Backspace" && element.selectionStart > 0) {
    element.setRangeText("", element.selectionStart - 1, element.selectionEnd, "end");
  } else {
    element.dispatchEvent(new KeyboardEvent("keydown", { key: key.name, bubbles: true }));
    return;
  }
  element.dispatchEvent(new Event("input", { bubbles: true }));
}

document.addEventListener( // a load never reaches the window
  "load",
  ({ target }) => {
    if (!(target instanceof HTMLImageElement) || !target.matches("#view img[data-image]")) return;
    if (shown.classKey !== view().dataset.classKey) {
      shown.classKey = view().dataset.classKey;
      shown.images.clear();
    }
    shown.images.add(target.dataset.image);
  },
  true,
);
addEventListener(
  "keydown",
  (event) => {
    if (!event.isTrusted || !view() || event.metaKey || event.altKey || event.isComposing) return;
    if ([...event.key].length > 1 && !NAMED.has(event.key)) return;
    const pressesButton = event.key === "Enter" || event.key === " ";
    if (pressesButton && event.target.closest("button, .q-item")) return; // the browser makes a click of it
    if (isTyping() && !isBusy() && event.target.closest(".q-dialog")) {
      const leaves = event.key === "Escape" || (event.key === "Enter" && !event.shiftKey);
      if (!leaves) return; // the browser types it
    } else if (event.ctrlKey && !actionOf(mode(), { name: `Ctrl+${event.key}` })) return;
    event.preventDefault();
    if (isTyping()) event.stopImmediatePropagation(); // the dialog would close by itself
    const held = actionOf(mode(), { name: latin({ name: event.key, code: event.code }) });
    if (held?.action === "pan") {
      pan(true);
      return;
    }
    if (held?.action === "magnify" && held.inBrowser && !isBusy() && magnify(true)) return;
    // a key held down steps as fast as it is answered, and gives one verdict
    if (event.repeat && (isBusy() || !REPEATED.has(event.key))) return;
    press(event.key, {}, { shift: event.shiftKey, ctrl: event.ctrlKey, repeat: event.repeat, code: event.code, digit: digitOf(event) });
  },
  true,
);
addEventListener("keyup", (event) => {
  if (event.key === keyOf("pan")) pan(false);
  const glass = keyOf("magnify");
  if (event.code === `Key${glass.toUpperCase()}` || event.key.toLowerCase() === glass) magnify(false);
});

// A key of the row of digits, whatever the layout makes of it with and without Shift: the digit, and the card that has
// it on the screen.
function digitOf({ code, key }) {
  const digit = /^Digit([1-9])$/.exec(code)?.[1];
  if (!digit || key === "/" || key === "?") return null; // with Shift on a German keyboard
  const card = document.querySelectorAll("#view [data-card]")[Number(digit) - 1];
  return { key: digit, card: card?.dataset.card, reason: card?.dataset.likeliest };
}

// --- keys that a lost connection takes along: the page is loaded anew ----------------------------

addEventListener("pagehide", () => {
  const count = waiting.length + (isUnanswered() ? 1 : 0) + (isWaiting() ? 1 : 0);
  if (count > 0) sessionStorage.setItem(LOST, count);
});

export function tellLost() {
  const count = sessionStorage.getItem(LOST);
  sessionStorage.removeItem(LOST);
  if (count !== null) press("lost", { card: count });
}
