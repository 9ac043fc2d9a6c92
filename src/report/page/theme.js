// Light and dark, and everything that has to be drawn again.

const drawings = [];

// `draw(width)` fills `place`; it is called again when the width or, if it paints in colours of its
// own, the theme changes.
function drawn(place, draw, paints = false) {
  drawings.push({place, draw, paints, width: 0});
}

function redraw(mustPaint = false) {
  for (const drawing of drawings) {
    const width = Math.floor(drawing.place.clientWidth);
    const isStale = width !== drawing.width || (mustPaint && drawing.paints);
    drawing.width = width;  // 0: not in the page now, to be drawn when it is back
    if (width > 0 && isStale) drawing.draw(width);
  }
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
let chosenTheme = null;  // by the reader; else the system's counts
let isPrinting = false;

function showTheme(theme) {
  document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  button.textContent = theme === "dark" ? "Light" : "Dark";
  button.setAttribute("aria-label", `Show in ${theme === "dark" ? "light" : "dark"} colours`);
  redraw(true);
}

function currentTheme() {
  if (isPrinting) return "light";  // paper is white
  return chosenTheme ?? (systemIsDark.matches ? "dark" : "light");
}

function followTheme() {
  showTheme(currentTheme());
  systemIsDark.addEventListener("change", () => showTheme(currentTheme()));
  document.getElementById("theme").addEventListener("click", () => {
    chosenTheme = currentTheme() === "dark" ? "light" : "dark";
    showTheme(chosenTheme);
  });
  let waiting = false;
  addEventListener("resize", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      redraw();
    });
  });
  addEventListener("beforeprint", () => {  // what is folded cannot be opened on paper
    for (const details of document.querySelectorAll("td details")) details.open = true;
    isPrinting = true;
    showTheme(currentTheme());
  });
  addEventListener("afterprint", () => {
    isPrinting = false;
    showTheme(currentTheme());
  });
}
