// For how long the reviewer has had each image of the queue before them, which `a` (the rest is clean) asks: whole on the
// screen, and large enough. Images that are side by side share the time, because nobody looks at two at once.
import { view } from "../web/view.js";

const TICK_MILLISECONDS = 100;
const SHARP_RATIO = 2; // pixels of the page for one of the image
const LONGEST_TICK_SECONDS = 0.25; // a window that was hidden, a machine that slept

const looked = { classKey: "", seconds: new Map() };
let before = []; // what was whole on the screen at the last tick
let last = performance.now();

// Seconds that each image needs.
export const neededOfEach = () => Number(view()?.dataset.seconds ?? 0);

// Where an image lies on the screen; its element may be larger.
export function placeOf(image) {
  const frame = image.getBoundingClientRect();
  const scale = Math.min(frame.width / image.naturalWidth, frame.height / image.naturalHeight);
  const [width, height] = [image.naturalWidth * scale, image.naturalHeight * scale];
  return { left: frame.left + (frame.width - width) / 2, top: frame.top + (frame.height - height) / 2, width, height };
}

// Show the pixels of an enlarged image as squares: smoothed, a small image looks blurred.
function sharpen(image) {
  const isEnlarged = image.naturalWidth && placeOf(image).width >= SHARP_RATIO * image.naturalWidth;
  image.style.imageRendering = isEnlarged ? "pixelated" : "auto";
}

function isWhole(image) {
  if (!image.complete || !image.naturalWidth) return false;
  const { left, top, width, height } = placeOf(image);
  const isKnown = secondsOf(image.dataset.image) >= neededOfEach(); // before replacements came, its card was larger
  if (width * height < Number(view().dataset.pixels) && !isKnown) return false;
  const photo = image.closest(".photo");
  const [right, bottom] = [left + width - 1, top + height - 1];
  const points = [[left + 1, top + 1], [right, top + 1], [left + 1, bottom], [right, bottom], [left + width / 2, top + height / 2]];
  // whatever covers a corner (an edge of the window, a notice, a dialog), the point is not the photo's
  return points.every(([x, y]) => photo.contains(document.elementFromPoint(x, y)));
}

// Image ids of the queue that are whole on the screen, and large enough.
export const whole = () =>
  [...document.querySelectorAll("#view [data-queued] img[data-image]")].filter(isWhole).map(({ dataset }) => dataset.image);

export const secondsOf = (id) => looked.seconds.get(id);

setInterval(() => {
  const seconds = Math.min((performance.now() - last) / 1000, LONGEST_TICK_SECONDS);
  last = performance.now();
  if (!view() || document.visibilityState !== "visible") return;
  // at each tick: images are drawn anew, windows resized, and the wheel zooms
  document.querySelectorAll("#view img, #overlay img").forEach(sharpen);
  if (looked.classKey !== view().dataset.classKey) {
    looked.classKey = view().dataset.classKey;
    looked.seconds.clear();
  }
  const here = whole();
  const unfinished = here.filter((id) => (secondsOf(id) ?? 0) < neededOfEach());
  for (const id of here) {
    // what has appeared since the last tick has been there for none of it
    const isCounted = unfinished.includes(id) && before.includes(id);
    looked.seconds.set(id, (secondsOf(id) ?? 0) + (isCounted ? seconds / unfinished.length : 0));
  }
  before = here;
}, TICK_MILLISECONDS);
