// While q is held: the image under the mouse with a whole number of device pixels for each of its own, so that nothing
// is smoothed, and at least twice as large as on its card.
import "../web/pixels.js";
import "../web/seen.js";

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
  glass.append(document.createElement("div"), new Image(), document.createElement("span"));
  glass.children[1].addEventListener("load", look);
  document.body.append(glass);
  look();
  return true;
}

const imageUnderMouse = () => document.elementFromPoint(mouse.x, mouse.y)?.closest(".photo")?.querySelector("img[data-image]");

function look() {
  if (glass === null) return;
  const [frame, full, ratio] = glass.children;
  const image = imageUnderMouse();
  glass.hidden = !image?.naturalWidth;
  if (glass.hidden) return;
  const address = image.src.replace(/\/image\/(card|small)\//, "/image/full/");
  if (full.src !== address) full.src = address;
  if (!full.complete || !full.naturalWidth) {
    glass.hidden = true;
    return;
  }
  const { left, top, width, height } = placeOf(image);
  const size = [full.naturalWidth, full.naturalHeight];
  const factor = Math.max(1, Math.ceil((2 * width * devicePixelRatio) / size[0] - 1e-6));
  const share = [(mouse.x - left) / width, (mouse.y - top) / height].map((each) => Math.min(1, Math.max(0, each)));
  const middle = size.map((pixels, axis) => (share[axis] * pixels * factor) / devicePixelRatio);
  const corner = [mouse.x, mouse.y].map((at, axis) =>
    wholePixels(Math.min([innerWidth, innerHeight][axis] - PIXELS, Math.max(0, at - PIXELS / 2))));
  frame.style.transform = `translate(${corner[0]}px, ${corner[1]}px)`;
  ratio.style.transform = `translate(${corner[0] + PIXELS}px, ${corner[1] + PIXELS}px) translate(-100%, -100%)`;
  ratio.textContent = `${100 * factor} %`;
  // from the window's corner, and cut to the frame: in a frame that is not on whole pixels the browser would smooth
  const place = corner.map((at, axis) => wholePixels(at + PIXELS / 2 - middle[axis]));
  placeAtPixels(full, size, factor, ...place);
  const cut = place.map((at, axis) => [(corner[axis] - at) * devicePixelRatio, (corner[axis] + PIXELS - at) * devicePixelRatio]);
  const [[near, far], [high, low]] = cut;
  full.style.clipPath = `polygon(${near}px ${high}px, ${far}px ${high}px, ${far}px ${low}px, ${near}px ${low}px)`;
}

addEventListener("mousemove", ({ clientX, clientY }) => {
  [mouse.x, mouse.y] = [clientX, clientY];
  look();
});
addEventListener("blur", () => magnify(false));
