// While q is held: the image under the mouse with a whole number of device pixels for each of its own, so that nothing
// is smoothed, and at least twice as large as on its card.
import "../web/pixels.js";
import "../web/seen.js";
import { fill } from "../web/view.js";

const PIXELS = 320;

const mouse = { x: -1, y: -1 };
let glass = null;

// Whether there is an image to magnify.
export function magnify(on) {
  if (on === (glass !== null)) return on;
  if (!on || !imageUnderMouse()?.naturalWidth) {
    glass?.remove();
    glass = null;
    return false;
  }
  glass = Object.assign(document.createElement("div"), { id: "magnifier", hidden: true });
  glass.setAttribute("aria-hidden", "true");
  const [ground, frame, ratio] = ["ground", "frame", "ratio"].map((className) => Object.assign(document.createElement("div"), { className }));
  frame.append(new Image());
  glass.append(ground, frame, ratio);
  document.body.append(glass);
  look();
  return true;
}

const imageUnderMouse = () => document.elementFromPoint(mouse.x, mouse.y)?.closest(".photo")?.querySelector("img[data-image]");

async function load(frame, file, alt) {
  const image = frame.firstElementChild;
  image.alt = alt;
  image.dataset.file = file;
  if (await fill(frame)) {
    reveal(frame);
    look();
  } else if (image.dataset.file === file) image.dataset.file = ""; // to be asked for again
}

function look() {
  if (glass === null) return;
  const [ground, frame, ratio] = glass.children;
  const full = frame.firstElementChild;
  const image = imageUnderMouse();
  glass.hidden = !image?.naturalWidth;
  if (glass.hidden) return;
  const file = image.src.replace(/\/image\/(card|small)\//, "/image/full/");
  if (full.dataset.file !== file) load(frame, file, image.alt);
  const corner = [mouse.x, mouse.y].map((at, axis) =>
    wholePixels(Math.min([innerWidth, innerHeight][axis] - PIXELS, Math.max(0, at - PIXELS / 2))));
  ground.style.transform = `translate(${corner[0]}px, ${corner[1]}px)`;
  const isLoading = frame.querySelector(".loading") !== null;
  ratio.hidden = isLoading;
  Object.assign(frame.style, isLoading ? { width: `${PIXELS}px`, height: `${PIXELS}px`, transform: ground.style.transform } : { transform: "none" });
  if (isLoading) return;
  const { left, top, width, height } = placeOf(image);
  const size = [full.naturalWidth, full.naturalHeight];
  const factor = Math.max(1, Math.ceil((2 * width * devicePixelRatio) / size[0] - 1e-6));
  const share = [(mouse.x - left) / width, (mouse.y - top) / height].map((each) => Math.min(1, Math.max(0, each)));
  const middle = size.map((pixels, axis) => (share[axis] * pixels * factor) / devicePixelRatio);
  ratio.style.transform = `translate(${corner[0] + PIXELS}px, ${corner[1] + PIXELS}px) translate(-100%, -100%)`;
  ratio.textContent = `${100 * factor} %`;
  // from the window's corner, and cut to the frame: in a frame that is not on whole pixels the browser would smooth
  const place = corner.map((at, axis) => wholePixels(at + PIXELS / 2 - middle[axis]));
  const scale = placeAtPixels(full, size, factor, ...place);
  const cut = place.map((at, axis) => [(corner[axis] - at) / scale, (corner[axis] + PIXELS - at) / scale]);
  const [[near, far], [high, low]] = cut;
  full.style.clipPath = `polygon(${near}px ${high}px, ${far}px ${high}px, ${far}px ${low}px, ${near}px ${low}px)`;
}

addEventListener("mousemove", ({ clientX, clientY }) => {
  [mouse.x, mouse.y] = [clientX, clientY];
  look();
});
addEventListener("blur", () => magnify(false));
