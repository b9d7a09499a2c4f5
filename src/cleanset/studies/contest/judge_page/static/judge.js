// The judge page in the browser. Keys and clicks go to the server one at a time, each when the one before is
// answered; what is shown is the server's. A click on the image is a corner of the outline, in pixels of the image.
import { announce, emitKey, isUnanswered, loadAhead, secondsShown, view, whenDrawn } from "../web/view.js";
import { drag, endDrag, outlineKey, position, restoreOutline, startDrag, wasDragged } from "./outline.js";

const LEFT_ALONE = new Set(["Shift", "Control", "Alt", "Meta", "Tab", "F5", "F11", "F12"]);
const SCROLLING = new Set(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "PageUp", "PageDown", "Home", "End", " "]);

const waiting = [];

const drawing = () => document.querySelector("#outline");
const isThere = (image) => image.complete && image.naturalWidth > 0;
const shown = new Set(); // every answer draws the page anew; the browser may take a moment for an image it has
const seen = () => [...document.querySelectorAll("img[data-image]")].map((image) => image.dataset.image).filter((each) => shown.has(each));

function note(image) {
  if (image.matches?.("img[data-image]") && isThere(image)) shown.add(image.dataset.image);
}
document.addEventListener("load", ({ target }) => note(target), true); // a load never reaches the window

function press(key, more = {}) {
  waiting.push({ key, seen: seen(), shown: secondsShown(), ...more });
  work();
}

function work() {
  if (isUnanswered() || waiting.length === 0 || !view()) return;
  emitKey(waiting.shift());
}

addEventListener(
  "keydown",
  (event) => {
    if (!event.isTrusted || !view() || event.metaKey || event.altKey || event.ctrlKey || event.isComposing) return;
    const sent = event.target.closest("button") && event.key === " " ? undefined : outlineKey(event);
    if (sent !== undefined) {
      event.preventDefault();
      if (sent && !event.repeat) press(sent.key, sent);
      return;
    }
    if (LEFT_ALONE.has(event.key) || SCROLLING.has(event.key)) return;
    if (event.key === "Enter" && event.target.closest("button")) return; // the browser makes a click of it
    event.preventDefault();
    if (!event.repeat) press(event.key);
  },
  true,
);

// --- the outline ---------------------------------------------------------------------------------

addEventListener("click", (event) => {
  const button = event.target.closest("button[data-key]");
  if (button) press(button.dataset.key);
  else if (event.target.closest("#outline.drawing") && !wasDragged()) press("corner", { point: position(event) });
});
addEventListener("mousedown", (event) => {
  if (!event.target.closest("button[data-key], #outline")) return;
  event.preventDefault(); // a button that is clicked does not take the keyboard's focus
  document.activeElement.blur();
  if (event.target.closest("#outline")) startDrag(event);
});
addEventListener("mouseup", (event) => {
  const sent = endDrag(event);
  if (sent) press(sent.key, sent);
});
// the edge from the last corner to the mouse
addEventListener("mousemove", (event) => {
  drag(event);
  const edge = document.querySelector("#next-edge");
  if (!edge) return;
  const over = event.target.closest("#outline.drawing");
  edge.style.display = over ? "" : "none";
  if (!over) return;
  const [x, y] = position(event);
  edge.setAttribute("x2", x);
  edge.setAttribute("y2", y);
});

// --- what the server shows -----------------------------------------------------------------------

let focused = null; // what has the keyboard's focus, which every new rendering would lose: a selector
addEventListener("focusin", ({ target }) => {
  const key = target.closest("button[data-key]")?.dataset.key;
  focused = key ? `button[data-key="${CSS.escape(key)}"]` : target.matches(".stage") ? ".stage" : "h1";
});

const words = (selector) => document.querySelector(selector)?.textContent.trim().replace(/\s+/g, " ") ?? "";

let mode = "";
let told = { done: Infinity };
whenDrawn(() => {
  document.querySelectorAll("img[data-image]").forEach(note);
  restoreOutline();
  if (view().dataset.mode !== mode) {
    mode = view().dataset.mode;
    scrollTo(0, 0);
  }
  if (document.activeElement === document.body && focused !== null) {
    const heading = document.querySelector(".asked h1, .words h1");
    heading.tabIndex = -1;
    (document.querySelector(focused) ?? heading).focus({ preventScroll: true });
  }
  const { pressed, done } = view().dataset;
  if (pressed !== told.pressed) {
    announce([Number(done) > told.done ? "Saved." : "", ...[".notice", ".progress", ".asked h1, .words h1"].map(words)].join(" "));
    told = { pressed, done: Number(done) };
  }
  loadAhead(view().dataset.ahead);
  work();
});
