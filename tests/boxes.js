// Problems of the boxes of a page as currently shown; evaluated in the page by tests/boxes.py.
// Returns lines such as `cut in half: button "Save"`.
(inside) => {
  const LEAST_FONT = 12;
  const ROOM = 1; // pixels that borders and rounding may take
  const found = [];
  const root = [...document.querySelectorAll(inside)].find((each) => each.getClientRects().length) ?? document.body;
  const style = (element) => getComputedStyle(element);
  const CONTROLS = "button, a[href], input:not([type=hidden]), select, textarea, summary";

  const name = (element) => {
    const id = element.id ? `#${element.id}` : "";
    const classes = typeof element.className === "string" && element.className.trim();
    const text = (element.innerText ?? element.textContent ?? "").trim().replace(/\s+/g, " ").slice(0, 40);
    return `${element.tagName.toLowerCase()}${id}${classes ? `.${classes.split(/\s+/).slice(0, 2).join(".")}` : ""}${text ? ` "${text}"` : ""}`;
  };
  const ancestors = function* (element) {
    for (let each = element; each; each = each.parentElement) yield each;
  };
  const opacity = (element) => [...ancestors(element)].reduce((all, each) => all * Number(style(each).opacity), 1);
  // shown to nobody, or to those who listen alone
  const isHidden = (element) => {
    if (!element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true, opacityProperty: true })) return true;
    return [...ancestors(element)].some((each) => {
      const own = style(each);
      const box = each.getBoundingClientRect();
      return own.clipPath.startsWith("inset(50%") || (own.overflow !== "visible" && box.width <= 1 && box.height <= 1)
        || (each.tagName === "DETAILS" && !each.open && !each.querySelector(":scope > summary")?.contains(element));
    });
  };
  const scrolls = (element, axis) => /auto|scroll/.test(style(element)[`overflow${axis}`]);
  const clips = (element, axis) => /hidden|clip/.test(style(element)[`overflow${axis}`]);
  const isCutOnPurpose = (element) => style(element).textOverflow === "ellipsis"
    || (style(element).webkitLineClamp !== "none" && ![...element.children].some((each) => /block|flex|grid/.test(style(each).display)));
  // the box of an element inside its borders
  const inner = (element) => {
    const box = element.getBoundingClientRect();
    return { left: box.left + element.clientLeft, top: box.top + element.clientTop,
             right: box.left + element.clientLeft + element.clientWidth, bottom: box.top + element.clientTop + element.clientHeight };
  };
  // the layer that an element is painted in: what is fixed or in a dialog may be over others
  const layerOf = (element) => [...ancestors(element)].find((each) =>
    ["fixed", "sticky"].includes(style(each).position) || each.tagName === "DIALOG" || each.getAttribute("role") === "dialog") ?? root;

  // texts: one entry for each line, of what has text of its own; controls: their boxes
  const lines = [];
  const controls = [];
  for (const element of [root, ...root.querySelectorAll("*")]) {
    if (["SCRIPT", "STYLE", "NOSCRIPT", "TITLE", "OPTION", "DESC"].includes(element.tagName) || isHidden(element)) continue;
    if (element.matches(CONTROLS)) controls.push({ element, box: element.getBoundingClientRect() });
    for (const node of element.childNodes) {
      if (node.nodeType !== Node.TEXT_NODE || !node.textContent.trim()) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const box of range.getClientRects())
        if (box.width > 1 && box.height > 1) lines.push({ element, box });
    }
  }

  // 1. cut: by what hides what goes beyond it
  const cutBy = ({ element, box }, isControl) => {
    for (const each of ancestors(element)) {
      if (each === element && isControl) continue;
      const limits = inner(each);
      if (style(each).display === "inline" || style(each).display === "contents") continue;
      if (scrolls(each, "Y") || scrolls(each, "X")) return null; // it can be scrolled to
      const position = style(element).position;
      if (clips(each, "Y")) {
        if (box.bottom <= limits.top || box.top >= limits.bottom)
          return isCutOnPurpose(each) && !isControl ? null : ["hidden", each];
        if (box.bottom > limits.bottom + box.height / 4 || box.top < limits.top - box.height / 4) return ["cut in half", each];
      }
      if (clips(each, "X") && (box.right > limits.right + ROOM || box.left < limits.left - ROOM) && !isCutOnPurpose(each))
        return ["cut at its side", each];
      if (style(each).position === "fixed") return null;
    }
    return null;
  };
  for (const [those, isControl] of [[lines, false], [controls, true]])
    for (const each of those) {
      const cut = cutBy(each, isControl);
      if (cut && !(cut[0] === "hidden" && document.documentElement === cut[1])) found.push(`${cut[0]}: ${name(each.element)}, by ${name(cut[1]).split(' "')[0]}`);
    }

  // 2. outside the window
  const pageScrolls = document.documentElement.scrollHeight > innerHeight + ROOM && !clips(document.documentElement, "Y") && !clips(document.body, "Y");
  for (const { element, box } of [...lines, ...controls]) {
    const between = [...ancestors(element)];
    if (!between.some((each) => scrolls(each, "X") && each !== document.documentElement && each !== document.body)
        && (box.right > innerWidth + ROOM || box.left < -ROOM))
      found.push(`beside the window: ${name(element)}, ${Math.round(box.left)} to ${Math.round(box.right)} of ${innerWidth}`);
    const fixed = between.some((each) => style(each).position === "fixed");
    if (!between.some((each) => scrolls(each, "Y") && each !== document.documentElement && each !== document.body)
        && (fixed || !pageScrolls) && (box.bottom > innerHeight + ROOM || box.top < -ROOM))
      found.push(`above or below the window: ${name(element)}, ${Math.round(box.top)} to ${Math.round(box.bottom)} of ${innerHeight}`);
  }

  // 3. overlapping: texts and controls of one layer, neither inside the other
  const inView = (box) => box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  const seen = [...lines, ...controls].filter(({ box }) => inView(box) && box.width > 2 && box.height > 2)
    .map((each) => ({ ...each, layer: layerOf(each.element) }));
  seen.sort((one, two) => one.box.top - two.box.top);
  const within = (one, two) => one.contains(two) || two.contains(one);
  const visible = ({ element, box }) => {
    for (const each of ancestors(element)) {
      if (each === element || style(each).display === "inline") continue;
      if (scrolls(each, "Y") || clips(each, "Y") || scrolls(each, "X") || clips(each, "X")) {
        const limits = inner(each);
        box = { left: Math.max(box.left, limits.left), right: Math.min(box.right, limits.right),
                top: Math.max(box.top, limits.top), bottom: Math.min(box.bottom, limits.bottom) };
      }
    }
    return box;
  };
  for (const each of seen) each.box = visible(each);
  for (let first = 0; first < seen.length; first++)
    for (let second = first + 1; second < seen.length; second++) {
      const [one, two] = [seen[first], seen[second]];
      if (one.layer !== two.layer || within(one.element, two.element)) continue;
      const wide = Math.min(one.box.right, two.box.right) - Math.max(one.box.left, two.box.left);
      const high = Math.min(one.box.bottom, two.box.bottom) - Math.max(one.box.top, two.box.top);
      // the boxes of two lines of text touch where lines are close
      const least = Math.min(one.box.bottom - one.box.top, two.box.bottom - two.box.top) / 3;
      if (wide > 2 && high > Math.max(3, least)) found.push(`overlapping: ${name(one.element)} and ${name(two.element)}, ${Math.round(wide)} x ${Math.round(high)}`);
    }

  // 4. small; in a drawing, at the scale at which it is shown
  for (const { element } of lines) {
    const scale = element instanceof SVGElement ? Math.abs(element.getScreenCTM()?.d ?? 1) : 1;
    const size = Number.parseFloat(style(element).fontSize) * scale;
    if (size < LEAST_FONT - 0.05) found.push(`${Math.round(10 * size) / 10} px: ${name(element)}`);
  }

  // 5. contrast, by WCAG 2.2, of text on what is behind it; an image behind it has no one color
  const parsed = (text) => {
    const numbers = (text.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
    const scale = text.startsWith("color(") ? 255 : 1;
    return { rgb: numbers.slice(0, 3).map((each) => each * scale), alpha: numbers[3] ?? 1 };
  };
  const over = (top, alpha, below) => below.map((each, place) => alpha * top[place] + (1 - alpha) * each);
  const luminance = (rgb) => rgb.map((each) => each / 255)
    .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
    .reduce((sum, each, place) => sum + each * [0.2126, 0.7152, 0.0722][place], 0);
  const groundOf = (element) => {
    const layers = [];
    for (const each of ancestors(element)) {
      const own = style(each);
      if (own.backgroundImage !== "none") return null;
      const { rgb, alpha } = parsed(own.backgroundColor);
      if (alpha > 0) layers.push([rgb, alpha]);
      if (alpha === 1) break;
      if (["fixed", "absolute"].includes(own.position) && each !== root) return null; // over what is behind it
    }
    const dark = matchMedia("(prefers-color-scheme: dark)").matches && /dark/.test(style(document.documentElement).colorScheme);
    return layers.reverse().reduce((below, [rgb, alpha]) => over(rgb, alpha, below), dark ? [18, 18, 18] : [255, 255, 255]);
  };
  for (const { element } of lines) {
    if (element instanceof SVGElement || element.closest("button:disabled, input:disabled, select:disabled, [aria-disabled=true]")) continue;
    const ground = groundOf(element);
    if (!ground) continue;
    const own = style(element);
    const { rgb, alpha } = parsed(own.color);
    const ink = over(rgb, alpha * opacity(element), ground);
    const [light, dark] = [luminance(ink), luminance(ground)].sort((one, two) => two - one);
    const ratio = (light + 0.05) / (dark + 0.05);
    const size = Number.parseFloat(own.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(own.fontWeight) >= 700);
    if (ratio < (isLarge ? 3 : 4.5) - 0.01) found.push(`contrast ${ratio.toFixed(2)}: ${name(element)}`);
  }
  return [...new Set(found)];
}
