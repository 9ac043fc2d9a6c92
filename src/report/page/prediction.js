// Every prediction against its measurement: a run that two series share is one.

function predictionTicks(domain) {
  const ticks = [];
  for (const power of powers(domain[0] / 10, domain[1] * 10, 10)) {
    const steps = domain[1] / domain[0] > 20 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 7];
    ticks.push(
        ...steps.map(step => step * power).filter(tick => tick >= domain[0] && tick <= domain[1]));
  }
  return ticks;
}

function caseName(row) {
  return `${row.label}, ${row.net}, batch ${row.batch}, ${row.budget}`;
}

function predictionNumbers(rows) {
  return table(
      ["case", "measured", "predicted", "off by"],
      rows.map(
          row =>
              [caseName(row), secondsText(row.seconds.median), secondsText(row.predicted_seconds),
               (100 * (row.predicted_seconds / row.seconds.median - 1)).toFixed(1) + " %"]));
}

function predictionFigure(bench) {
  const rows =
      bench.runs.map(i => bench.rows[i]).filter(row => ran(row) && row.predicted_seconds);
  if (rows.length === 0) return null;
  const times = rows.flatMap(row => [row.seconds.median, row.predicted_seconds]);
  const domain = [d3.min(times) / 1.15, d3.max(times) * 1.15];
  const ticks = predictionTicks(domain);
  const series = [...groupBy(rows, row => row.label)].map(
      ([label, own]) => ({
        key: label,
        name: label,
        isLoose: true,
        points: own.map(row => ({
                          x: row.seconds.median,
                          y: row.predicted_seconds,
                          title: caseName(row),
                          facts: stepFacts(row)
                        })),
      }));
  return figure({
    title: "Prediction against measurement",
    caption: "Each point is a case; the band is ±10 %, points above it ran faster than " +
        `predicted. ${bench.file}`,
    before: [legend(series.map(one => one.key), key => key)],
    draw: (width, id) => lineChart(width, id, {
      x: {domain, isLog: true, ticks, format: tickSeconds, label: "measured step"},
      y: {domain, isLog: true, ticks, format: tickSeconds, label: "predicted step"},
      band: 0.1,
      series,
      height: Math.min(420, Math.max(300, width * 0.8)),
    }),
    numbers: predictionNumbers(rows),
  });
}
