// While q is held: the image under the mouse at its own pixels, and at least twice as large as on its card.
import { placeOf } from "./looks.js";

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
  glass.append(new Image(), document.createElement("span"));
  glass.firstChild.addEventListener("load", look);
  document.body.append(glass);
  look();
  return true;
}

const imageUnderMouse = () => document.elementFromPoint(mouse.x, mouse.y)?.closest(".photo")?.querySelector("img[data-image]");

function look() {
  if (glass === null) return;
  const [full, ratio] = glass.children;
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
  const scale = Math.max(1 / devicePixelRatio, (2 * width) / full.naturalWidth);
  const share = [(mouse.x - left) / width, (mouse.y - top) / height].map((each) => Math.min(1, Math.max(0, each)));
  full.style.width = `${full.naturalWidth * scale}px`;
  full.style.left = `${PIXELS / 2 - share[0] * full.naturalWidth * scale}px`;
  full.style.top = `${PIXELS / 2 - share[1] * full.naturalHeight * scale}px`;
  glass.style.left = `${Math.min(innerWidth - PIXELS, Math.max(0, mouse.x - PIXELS / 2))}px`;
  glass.style.top = `${Math.min(innerHeight - PIXELS, Math.max(0, mouse.y - PIXELS / 2))}px`;
  ratio.textContent = `${Math.round(100 * scale * devicePixelRatio)} %`;
}

addEventListener("mousemove", ({ clientX, clientY }) => {
  [mouse.x, mouse.y] = [clientX, clientY];
  look();
});
addEventListener("blur", () => magnify(false));
