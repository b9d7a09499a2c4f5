// The key for all the rest of the class is clean. It waits until the reviewer has had each image before them for long enough,
// whole in sight and large enough, and shows for how long. What is pressed meanwhile goes first: that is how an exception is
// made. Images that are side by side share the time, because nobody looks at two at once.
import { needed, view } from "../web/view.js";

const CHECK_MILLISECONDS = 50;
const TICK_MILLISECONDS = 100;
const LONGEST_TICK_SECONDS = 0.25; // a window that was hidden, a machine that slept
const SHARP_RATIO = 2; // pixels of the page for one of the image
const WAIT = `inset: auto auto 7px 50%; translate: -50%; border-radius: 6px; background: var(--ink); color: var(--ground);
  font-weight: 600; font-variant-numeric: tabular-nums`;

const looked = { classKey: "", seconds: new Map() };
let before = []; // what was whole in sight at the last tick
let last = performance.now();
let waiting = null; // the key
let send = null;

const secondsOf = (id) => looked.seconds.get(id) ?? 0;
const missingOf = (id) => Math.max(0, Number(view().dataset.seconds ?? 0) - secondsOf(id));
export const isWaiting = () => waiting !== null;

function isLargeEnough(image) {
  const [width, height] = sizeOnScreen(image).map((each) => each / devicePixelRatio);
  const isKnown = looked.seconds.has(image.dataset.image) && missingOf(image.dataset.image) === 0; // before replacements came, its card was larger
  return isKnown || width * height >= Number(view().dataset.pixels);
}

// Image ids of the queue that are whole in sight, and large enough.
export const onScreen = () =>
  [...document.querySelectorAll("#view [data-queued] img[data-image]")]
    .filter((image) => isWholeInSight(image) && isLargeEnough(image))
    .map(({ dataset }) => dataset.image);

// Show the pixels of an enlarged image as squares: smoothed, a small image looks blurred.
function sharpen(image) {
  const isEnlarged = image.naturalWidth && placeOf(image).width >= SHARP_RATIO * image.naturalWidth;
  image.style.imageRendering = isEnlarged ? "pixelated" : "auto";
}

setInterval(() => {
  const seconds = Math.min((performance.now() - last) / 1000, LONGEST_TICK_SECONDS);
  last = performance.now();
  if (!view()) return;
  // at each tick: images are drawn again, windows resized, and the wheel zooms
  document.querySelectorAll(":is(#view, #overlay) img:not(.frame img)").forEach(sharpen);
  if (looked.classKey !== view().dataset.classKey) {
    looked.classKey = view().dataset.classKey;
    looked.seconds.clear();
  }
  const here = onScreen();
  const unfinished = here.filter(missingOf);
  for (const id of here) {
    // what has appeared since the last tick has been there for none of it
    const isCounted = unfinished.includes(id) && before.includes(id);
    looked.seconds.set(id, secondsOf(id) + (isCounted ? seconds / unfinished.length : 0));
  }
  before = here;
}, TICK_MILLISECONDS);

// Seconds until all images that were on the screen with the key, and still are, have been there for long enough.
function secondsLeft({ onScreen: ids }) {
  const here = onScreen().filter((id) => ids.includes(id));
  return here.reduce((left, id) => left + missingOf(id), 0);
}

// An image that has only just come has none yet.
const withSeconds = ({ onScreen: ids }) => ({ seconds: Object.fromEntries(ids.map((id) => [id, secondsOf(id)])) });

// Carry the key out by `emit`, now or when its time has come; a second one meanwhile is the same.
export function takeAll(key, emit) {
  if (isWaiting()) return;
  if (key.at.shown < needed()) {
    emit(key); // the server says that it did not count
    return;
  }
  [waiting, send] = [key, emit];
  carryOut();
}

export function stopWaiting() {
  waiting = null;
  show();
}

// `isHeld`: whether something else goes first, such as another key.
export function carryOut(isHeld = false) {
  if (waiting === null || !view()) return;
  const hasLeft = view().dataset.subject !== waiting.at.subject; // the server says that it did not count
  const isDue = hasLeft || (view().dataset.mode === "class" && secondsLeft(waiting) <= 0);
  if (isDue && !isHeld) {
    const key = waiting;
    waiting = null;
    send(key, withSeconds(key));
  }
  show();
}

function show() {
  const words = isWaiting() ? `All clean in ${Math.max(0.1, secondsLeft(waiting)).toFixed(1)} s. Esc stops it.` : null;
  tellOver("wait", words, { css: WAIT, role: "status" });
}

export const startChecking = (isHeld) => setInterval(() => carryOut(isHeld()), CHECK_MILLISECONDS);
