// The table of all cases, the fastest of each line marked.

const seriesNames = {
  budget: "Against budget",
  batch: "Against batch",
  planner: "Every planner"
};

// Below the ratio the time; what has not settled has no ratio.
function smallText(row) {
  if (!row.seconds.settled) return "~ not settled";
  if (row.ratio && !row.is_comparable) return "~ no measure";
  return secondsText(row.seconds.median);
}

function comparisonCell(bench, line, column) {
  const index = line.rows[column];
  if (index === null) return h("td", {}, h("span", {class: "sub"}, "—"));
  const row = bench.rows[index];
  if (!ran(row)) {
    return h(
        "td", {}, h("details", {}, h("summary", {title: row.failed}, "failed"), row.failed ?? ""));
  }
  const isFastest = line.fastest.includes(column);
  const isAlone = line.fastest.length === 1;
  const mark = !isFastest
      ? null
      : h("span", {class: "mark"}, h("span", {"aria-hidden": "true"}, isAlone ? "● " : "○ "),
          h("span", {class: "hidden"}, isAlone ? "fastest: " : "among the fastest: "));
  const cell =
      h("td", {class: isFastest ? (isAlone ? "first" : "tie") : null, "data-tip": ""}, mark,
        row.ratio && row.is_comparable ? ratioText(row.ratio) : secondsText(row.seconds.median),
        h("small", {}, smallText(row)));
  cell.addEventListener(
      "pointermove",
      event => showTip(
          event.clientX, event.clientY,
          `${row.label}, ${row.net}, batch ${row.batch}, ${row.budget}`, stepFacts(row)));
  cell.addEventListener("pointerleave", hideTip);
  return cell;
}

function comparisonLine(bench, line) {
  return h(
      "tr", {},
      h("th", {scope: "row"}, line.net,
        h("span", {class: "sub"}, `${line.image_size} px, batch ${line.batch}`)),
      h("td", {}, line.budget, h("span", {class: "sub"}, bytesText(line.budget_bytes))),
      bench.comparison.columns.map((_, column) => comparisonCell(bench, line, column)));
}

function comparisonTable(bench) {
  const {columns, lines} = bench.comparison;
  const bodies = [...groupBy(lines, line => line.series)].map(
      ([series, own]) =>
          h("tbody", {},
            h("tr", {},
              h("th", {scope: "rowgroup", colspan: columns.length + 2}, seriesNames[series])),
            own.map(line => comparisonLine(bench, line))));
  return h(
      "div", {}, h("h3", {}, "Who is the fastest"),
      h("div",
        {class: "scroll", tabindex: 0, role: "region", "aria-label": "Comparison of strategies"},
        h("table", {class: "comparison"},
          h("caption", {},
            h("span", {},
              "Step over the resident step, and its median time. ● fastest, ○ as fast within the " +
                  "spread, ~ not settled, or over a resident step that is not, and so never the " +
                  `fastest. ${bench.file}`)),
          h("thead", {},
            h("tr", {},
              ["network", "budget", ...columns].map(
                  name =>
                      h("th", {scope: "col", class: name === "network" ? "text" : null}, name)))),
          bodies)));
}
