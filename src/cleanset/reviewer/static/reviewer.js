// What only the browser can do: keys, pictures loaded ahead, the crop box. What is shown, and what was
// said, is the server's to decide: nothing here changes a verdict on the page.
(() => {
  const desk = () => document.querySelector("#desk");
  const mode = () => desk()?.dataset.mode ?? "";
  let cropper = null;

  // --- keys -------------------------------------------------------------------------------------

  const typing = (target) => target instanceof Element && target.closest("input, textarea, .q-dialog") !== null;
  const stepping = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "n", "p", "PageUp", "PageDown"]);

  // The pictures that were there to be seen when the key was pressed: the server takes no verdict on others.
  const seen = () =>
    [...document.querySelectorAll("#desk img[data-image]")]
      .filter((image) => image.complete && image.naturalWidth > 0)
      .map((image) => image.dataset.image);

  const send = (key, more = {}) =>
    emitEvent("key", { key, wnid: desk()?.dataset.wnid ?? "", seen: seen(), box: box(), ...more });

  addEventListener("keydown", (event) => {
    if (!desk() || typing(event.target) || event.metaKey || event.altKey) return;
    if (["Shift", "Control", "Tab", "F5", "F11", "F12"].includes(event.key)) return;
    if (mode() === "crop" && event.key.startsWith("Arrow")) {
      event.preventDefault();
      moveBox(event);
      return;
    }
    if (mode() === "zoom" && zoomed(event)) {
      event.preventDefault();
      return;
    }
    if (event.ctrlKey) return;
    event.preventDefault();
    if (event.repeat && !stepping.has(event.key)) return; // a key held down says one thing, once
    send(event.key);
  });

  addEventListener("click", (event) => {
    const button = event.target.closest("[data-key]");
    if (button) {
      send(button.dataset.key);
      return;
    }
    const card = event.target.closest("[data-card]");
    if (card) send("focus", { card: card.dataset.card });
  });
  addEventListener("dblclick", (event) => {
    if (event.target.closest("[data-card]")) send("Enter");
  });

  // --- the crop box -----------------------------------------------------------------------------

  // left, top, right, bottom in stored pixels; null where none is drawn
  function box() {
    if (!cropper || mode() !== "crop" || !cropper.cropped) return null;
    const { naturalWidth, naturalHeight } = cropper.getImageData();
    const { x, y, width, height } = cropper.getData(true);
    return [Math.max(0, x), Math.max(0, y), Math.min(naturalWidth, x + width), Math.min(naturalHeight, y + height)];
  }

  function setBox([left, top, right, bottom]) {
    if (!cropper.cropped) cropper.crop();
    cropper.setData({ x: left, y: top, width: right - left, height: bottom - top });
  }

  // Arrows move the box, with Shift its right or bottom edge, with Ctrl its left or top edge.
  function moveBox(event) {
    if (!cropper) return;
    const { naturalWidth, naturalHeight } = cropper.getImageData();
    const sizes = [naturalWidth, naturalHeight, naturalWidth, naturalHeight];
    const edges = box() ?? [0, 0, naturalWidth, naturalHeight];
    const axis = event.key === "ArrowLeft" || event.key === "ArrowRight" ? 0 : 1;
    const sign = event.key === "ArrowLeft" || event.key === "ArrowUp" ? -1 : 1;
    const step = sign * (event.repeat ? 5 : 1);
    const [low, high] = [axis, axis + 2];
    if (event.shiftKey) {
      edges[high] = Math.min(sizes[high], Math.max(edges[low] + 1, edges[high] + step));
    } else if (event.ctrlKey) {
      edges[low] = Math.max(0, Math.min(edges[high] - 1, edges[low] + step));
    } else {
      const by = Math.max(-edges[low], Math.min(sizes[high] - edges[high], step));
      edges[low] += by;
      edges[high] += by;
    }
    setBox(edges);
  }

  let later = 0;
  function boxChanged() {
    const edges = box();
    const said = document.querySelector("#crop-size");
    if (said) {
      const { naturalWidth, naturalHeight } = cropper.getImageData();
      said.dataset.box = edges ? edges.join(",") : "";
      said.textContent = edges
        ? `${edges[2] - edges[0]} × ${edges[3] - edges[1]} of ${naturalWidth} × ${naturalHeight} pixels`
        : `nothing drawn yet, of ${naturalWidth} × ${naturalHeight} pixels`;
    }
    clearTimeout(later);
    later = setTimeout(() => {
      for (const preview of document.querySelectorAll("img[data-preview]")) {
        const whole = edges ? `?box=${edges.join(",")}` : "";
        preview.src = preview.dataset.preview + whole;
      }
    }, 120);
  }

  function startCropping(image) {
    const begin = image.dataset.box ? image.dataset.box.split(",").map(Number) : null;
    cropper = new Cropper(image, {
      viewMode: 1,
      dragMode: "crop",
      autoCrop: false,
      checkOrientation: false,
      rotatable: false,
      scalable: false,
      background: false,
      guides: false,
      center: false,
      toggleDragModeOnDblclick: false,
      minCropBoxWidth: 2,
      minCropBoxHeight: 2,
      ready() {
        if (begin) setBox(begin);
        boxChanged();
        image.dataset.ready = "1";
      },
      crop: boxChanged,
    });
  }

  // --- looking closely --------------------------------------------------------------------------

  function startZooming(image) {
    cropper = new Cropper(image, {
      viewMode: 0,
      dragMode: "move",
      autoCrop: false,
      checkOrientation: false,
      background: false,
      toggleDragModeOnDblclick: false,
      zoom: (event) => sayZoom(event.detail.ratio),
      ready() {
        const { width, naturalWidth } = cropper.getCanvasData();
        sayZoom(width / naturalWidth);
        image.dataset.ready = "1";
      },
    });
  }

  function sayZoom(ratio) {
    const said = document.querySelector("#zoom-ratio");
    if (said) said.textContent = `${Math.round(ratio * 100)} %`;
  }

  function zoomed(event) {
    if (!cropper) return false;
    if (event.shiftKey && event.key.startsWith("Arrow")) {
      const by = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
      cropper.move(...by);
    } else if (event.key === "+" || event.key === "=") cropper.zoom(0.2);
    else if (event.key === "-") cropper.zoom(-0.2);
    else if (["1", "2", "4"].includes(event.key)) cropper.zoomTo(Number(event.key));
    else if (event.key === "0") cropper.reset();
    else return false;
    return true;
  }

  // --- what the server shows --------------------------------------------------------------------

  const ahead = new Map(); // pictures of the classes that come next, decoded and held
  function loadAhead() {
    const wanted = (document.querySelector("#ahead")?.dataset.pictures ?? "").split(" ").filter(Boolean);
    for (const url of ahead.keys()) if (!wanted.includes(url)) ahead.delete(url);
    for (const url of wanted) {
      if (ahead.has(url)) continue;
      const image = new Image();
      image.src = url;
      ahead.set(url, image);
      image.decode().catch(() => ahead.delete(url));
    }
  }

  let lookedAt = null;
  function changed() {
    const image = document.querySelector("#overlay img[data-look]");
    if (image !== lookedAt) {
      cropper?.destroy();
      cropper = null;
      lookedAt = image;
      if (image) (image.dataset.look === "crop" ? startCropping : startZooming)(image);
    }
    const wnid = desk()?.dataset.wnid;
    if (wnid && new URLSearchParams(location.search).get("class") !== wnid) {
      history.replaceState(null, "", `/?class=${wnid}`);
    }
    const focus = document.querySelector("[data-card].focus");
    if (focus && focus.dataset.card !== changed.focus) focus.scrollIntoView({ block: "nearest" });
    changed.focus = focus?.dataset.card;
    loadAhead();
  }

  addEventListener("DOMContentLoaded", () => {
    let asked = false;
    new MutationObserver(() => {
      if (asked) return;
      asked = true;
      queueMicrotask(() => {
        asked = false;
        changed();
      });
    }).observe(document.body, { childList: true, subtree: true });
    changed();
  });
})();
