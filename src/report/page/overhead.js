// What a smaller memory costs: step over the resident step, against the budget.

function overheadNumbers(rows) {
  return table(
      ["strategy", "budget", "near memory", "over resident", "step", "predicted", "runs"],
      rows.map(
          row =>
              [row.label, row.budget, bytesText(row.budget_bytes),
               row.ratio ? ratioText(row.ratio) : "—", secondsText(row.seconds.median),
               row.predicted_seconds ? secondsText(row.predicted_seconds) : "—",
               row.seconds.runs]));
}

function overheadPoint(row) {
  const scale = row.ratio / row.seconds.median;
  return {
    x: 100 * shareOf(row),
    y: row.ratio,
    min: row.seconds.min * scale,
    max: row.seconds.max * scale,
    title: `${row.label} at ${row.budget}`,
    facts: stepFacts(row)
  };
}

function predictedPoint(row) {
  return {
    x: 100 * shareOf(row),
    y: row.predicted_seconds * row.ratio / row.seconds.median,
    open: true,
    title: `${row.label} at ${row.budget}, predicted`,
    facts: stepFacts(row)
  };
}

function overheadSeries(rows, withPredictions) {
  return [...groupBy(rows, row => row.label)].map(([label, own]) => {
    const points = own.map(overheadPoint).sort((a, b) => b.x - a.x);
    if (withPredictions)
      points.push(...own.filter(row => row.predicted_seconds).map(predictedPoint));
    return {key: label, name: label, points};
  });
}

function overheadSpec(rows, isLog, withPredictions) {
  const series = overheadSeries(rows, withPredictions);
  const points = series.flatMap(one => one.points);
  const shares = points.map(p => p.x);
  const from = Math.min(1, d3.min(points, p => p.min ?? p.y));
  const to = d3.max(points, p => p.max ?? p.y);
  const domain = isLog ? [from * 0.97, to * 1.06]
                       : [Math.min(from, 1) - 0.04 * (to - from), to + 0.05 * (to - from)];
  const logTicks = [0.5, 0.7, 1, 1.2, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100, 200, 500];
  return {
    x: {
      domain: [Math.max(100, d3.max(shares)) + 2, Math.max(0, d3.min(shares) - 4)],
      ticks: [...new Set([100, ...shares.map(Math.round)])],
      format: tick => tick + " %",
      label: "near memory, of what the resident step needs  →  less"
    },
    y: {
      domain,
      isLog,
      ticks: isLog ? logTicks.filter(tick => tick >= domain[0] && tick <= domain[1])
                   : linearTicks(domain).filter(tick => tick >= domain[0]),
      format: tick => plain(tick) + "×",
      label: "step over the resident step"
    },
    series,
    height: 330,
  };
}

function overheadFigure(bench, rows) {
  const spread = d3.extent(rows, row => row.ratio);
  let isLog = spread[1] / spread[0] > 3;
  let withPredictions = false;
  const own = figure({
    title: `Overhead against budget: ${subject(rows[0])}, batch ${rows[0].batch}`,
    caption: "Time of a step over the resident step, lower is better; bars from the fastest to " +
        `the slowest run. ${bench.file}`,
    before: [h("div", { class: "controls" },
      toggle("log scale", isLog, is => { isLog = is; own.redraw(); }),
      toggle("predictions", false, is => { withPredictions = is; own.redraw(); }))],
    draw: (width, id) => {
      const spec = overheadSpec(rows, isLog, withPredictions);
      return labelledChart(width, id, spec);
    },
    numbers: overheadNumbers(rows),
  });
  return own;
}

// Whether the resident step, which the ratio of a row is over, has come to rest.
function hasMeasure(bench, row) {
  return !bench.rows.some(
      other => other.label === "resident" && ran(other) && !other.seconds.settled &&
          subject(other) === subject(row) && other.batch === row.batch);
}

function overheadFigures(bench) {
  const rows = bench.rows.filter(
      row => ran(row) && row.ratio && row.series !== "batch" && row.label !== "resident" &&
          hasMeasure(bench, row));
  return [...groupBy(rows, row => `${subject(row)} ${row.batch} ${row.series}`).values()]
      .filter(own => new Set(own.map(row => row.budget_bytes)).size > 1)
      .map(own => overheadFigure(bench, own));
}
