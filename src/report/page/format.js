// Elements, and numbers as people read them.

function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined));
  return element;
}

function scaled(value, units, base) {
  let unit = 0;
  while (unit + 1 < units.length && Math.abs(value) >= base * 0.9995) {
    value /= base;
    ++unit;
  }
  return [value, units[unit]];
}

// Three digits that count, of small numbers two, without an exponent.
function digits(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 0.095) return value.toFixed(Math.min(20, 1 - Math.floor(Math.log10(size))));
  return size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : value.toFixed(2);
}

// "1.5", not "1.50", for ticks and sizes that are round.
function plain(value) {
  return String(Number(Number(value).toPrecision(3)));
}

function bytesText(bytes) {
  const [value, unit] = scaled(bytes, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
  return (unit === "B" ? value : digits(value).replace(/\.0+$/, "")) + " " + unit;
}

function rateText(rate) {
  const [value, unit] = scaled(rate, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"], 1000);
  return digits(value) + " " + unit;
}

function secondsText(seconds) {
  const size = Math.abs(seconds);
  if (size >= 100) return seconds.toFixed(0) + " s";
  if (size >= 0.9995) return digits(seconds) + " s";
  if (size >= 0.9995e-3) return digits(seconds * 1e3) + " ms";
  return digits(seconds * 1e6) + " µs";
}

// For axes, where zeros say nothing: "1.5 s", "20 GB/s".
function tickText(text) {
  return text.replace(/\.(\d*?)0+ /, (_, kept) => (kept ? `.${kept} ` : " "));
}
function tickSeconds(seconds) {
  return seconds === 0 ? "0" : tickText(secondsText(seconds));
}

function lengthText(seconds) {
  return seconds < 90 ? secondsText(seconds) : (seconds / 60).toFixed(1) + " min";
}

function percentText(share) {
  return (100 * share).toFixed(0) + " %";
}
function ratioText(ratio) {
  return digits(ratio) + "×";
}
function countText(count) {
  return Number(count).toLocaleString("en");
}
// "1 file", "2 files"
function countOf(count, one) {
  return `${count} ${one}${count === 1 ? "" : "s"}`;
}
function words(name) {
  return name.replaceAll("_", " ");
}

function dateText(iso) {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return iso;
  return date.toISOString().slice(0, 16).replace("T", " ") + " UTC";
}

// "0.213 s (0.209 to 0.224, 5 runs)"
function timingText(timing) {
  const rest = timing.runs === 1
      ? "one run"
      : `${secondsText(timing.min)} to ${secondsText(timing.max)}, ${timing.runs} runs`;
  return `${secondsText(timing.median)} (${rest}${timing.settled ? "" : ", not settled"})`;
}

function table(head, rows, attributes = {}) {
  return h(
      "div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Table"},
      h("table", attributes,
        h("thead", {},
          h("tr", {},
            head.map((name, i) => h("th", {scope: "col", class: i === 0 ? "text" : null}, name)))),
        h("tbody", {},
          rows.map(
              row =>
                  h("tr", {},
                    row.map(
                        (cell, i) =>
                            i === 0 ? h("th", {scope: "row"}, cell) : h("td", {}, cell)))))));
}
