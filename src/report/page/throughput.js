// Images a second against the batch, through the point where memory is exceeded.

function throughputPoint(row) {
  const images = row.batch;
  return {
    x: row.batch,
    y: row.images_per_second,
    min: images / row.seconds.max,
    max: images / row.seconds.min,
    title: `${row.label} at batch ${row.batch}`,
    facts: stepFacts(row)
  };
}

function throughputFigure(bench, rows) {
  const measured = rows.filter(ran);
  const series = [...groupBy(measured, row => row.label)].map(
      ([label, own]) =>
          ({key: label, name: label, points: own.map(throughputPoint).sort((a, b) => a.x - b.x)}));
  const batches = [...new Set(measured.map(row => row.batch))].sort((a, b) => a - b);
  const max = d3.max(series.flatMap(one => one.points), p => Math.max(p.y, p.max));
  const last = d3.max(measured.filter(row => row.label === "resident"), row => row.batch);
  const y = {domain: [0, max * 1.08]};
  return figure({
    title: `Images a second against batch: ${subject(rows[0])}`,
    caption:
        `With ${bytesText(rows[0].budget_bytes)} of near memory; higher is better. ${bench.file}`,
    draw: (width, id) => labelledChart(width, id, {
      x: {
        domain: [batches[0] * 0.93, batches.at(-1) * 1.06],
        isLog: true,
        ticks: batches,
        format: plain,
        label: "images in a batch"
      },
      y: {...y, ticks: linearTicks(y.domain), format: plain, label: "images a second"},
      marks: last && last < batches.at(-1) ? [{
        x: last * Math.SQRT2 > batches.at(-1) ? last : last * 1.03,
        name: "resident fits up to here"
      }]
                                           : [],
      series,
      height: 330,
    }),
    numbers: table(
        ["strategy", "batch", "images/s", "step", "over resident"],
        measured.map(
            row =>
                [row.label, row.batch, digits(row.images_per_second), timingText(row.seconds),
                 row.ratio ? ratioText(row.ratio) : "—"])),
  });
}

function throughputFigures(bench) {
  const rows = bench.rows.filter(row => row.series === "batch");
  return [...groupBy(rows, subject).values()]
      .filter(own => new Set(own.filter(ran).map(row => row.batch)).size > 1)
      .map(own => throughputFigure(bench, own));
}
