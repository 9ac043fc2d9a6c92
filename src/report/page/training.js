// Curves of trainings, step by step.

const fullPercent = share => plain(100 * share) + " %";

// A curve of `training_curves` as points; what stands for several steps tells their range.
function curvePoints(training, name, text) {
  return (training.curves[name] ?? []).map(([x, y, min, max]) => ({
                                             x,
                                             y,
                                             min,
                                             max,
                                             title: `step ${countText(x)}`,
                                             facts: [
                                               [words(name), text(y)],
                                               ...(min < max ? [["about it", `${text(min)} to ${
                                                                     text(max)}`]]
                                                             : [])
                                             ]
                                           }));
}

function evaluationPoints(training, name, text) {
  return training.evaluations.filter(evaluation => evaluation[name] !== undefined)
      .map(evaluation => ({
             x: evaluation.step,
             y: evaluation[name],
             title: `after step ${countText(evaluation.step)}, epoch ${evaluation.epoch}`,
             facts: [[words(name), text(evaluation[name])]]
           }));
}

// Those that have points; many points are a line without marks.
function seriesOf(entries) {
  return entries.filter(([, points]) => points.length > 0)
      .map(([key, points]) => ({key, name: key, points, isDense: points.length > 40}));
}

function stepAxis(series) {
  const [first, last] = d3.extent(series.flatMap(one => one.points), p => p.x);
  const domain = first === last ? [first - 1, last + 1] : [first, last];
  return {
    domain,
    ticks: linearTicks(domain, 6).filter(Number.isInteger),
    format: countText,
    label: "step"
  };
}

function linearAxis(series, label, format, most = Infinity) {
  const max = d3.max(series.flatMap(one => one.points), p => p.y) || 1;
  const domain = [0, Math.max(max, Math.min(most, max * 1.06))];
  return {domain, ticks: linearTicks(domain), format, label};
}

function bytesAxis(series) {
  const axis = linearAxis(series, "memory", tickBytes);
  return {...axis, ticks: byteTicks(axis.domain[1])};
}

function logAxis(series, label, format) {
  const [min, max] = d3.extent(series.flatMap(one => one.points).filter(p => p.y > 0), p => p.y);
  const domain = [min / 1.1, max * 1.1];
  return {domain, isLog: true, ticks: predictionTicks(domain), format, label};
}

function lossSpec(series, isLog) {
  const shown = isLog
      ? series.map(one => ({...one, points: one.points.filter(p => p.y > 0)}))
      : series;
  return {
    title: "Loss",
    x: stepAxis(series),
    y: isLog ? logAxis(series, "loss", plain) : linearAxis(series, "loss", plain),
    series: shown
  };
}

function lossSeries(training) {
  return seriesOf([
    ["training", curvePoints(training, "loss", digits)],
    ["test", evaluationPoints(training, "test_loss", digits)]
  ]);
}

// The pictures of a training, but for its loss.
function otherSpecs(training) {
  const accuracy = seriesOf([
    ["training", curvePoints(training, "accuracy", fullPercent)],
    ["test", evaluationPoints(training, "test_accuracy", fullPercent)],
    ["test, top-5", evaluationPoints(training, "test_top5", fullPercent)]
  ]);
  const rate = seriesOf([["training", curvePoints(training, "learning_rate", plain)]]);
  const time = seriesOf([
    ["step", curvePoints(training, "seconds", secondsText)],
    ["waiting for data", curvePoints(training, "data_wait_seconds", secondsText)]
  ]);
  const memory = seriesOf([
    ["near at most", curvePoints(training, "near_peak_bytes", bytesText)],
    ["moved in", curvePoints(training, "bytes_prefetched", bytesText)],
    ["moved out", curvePoints(training, "bytes_offloaded", bytesText)]
  ]);
  const specs = [
    ["Accuracy", accuracy, () => linearAxis(accuracy, "of all labels", percentText, 1)],
    ["Learning rate", rate, () => linearAxis(rate, "learning rate", plain)],
    ["Memory of a step", memory, () => bytesAxis(memory)],
    ["Time of a step", time, () => linearAxis(time, "time", tickSeconds)]
  ];
  return specs.filter(([, series]) => series.length > 0)
      .map(([title, series, y]) => ({title, series, x: stepAxis(series), y: y()}));
}

function evaluationNumbers(training) {
  if (training.evaluations.length === 0) return null;
  const columns = [
    ["loss", "test_loss", value => value.toFixed(4)],
    ["accuracy", "test_accuracy", value => (100 * value).toFixed(2) + " %"],
    ["top-5", "test_top5", value => (100 * value).toFixed(2) + " %"],
    ["perplexity", "perplexity", digits]
  ].filter(([, key]) => training.evaluations.some(evaluation => evaluation[key] !== undefined));
  return table(
      ["after step", "epoch", ...columns.map(([name]) => name)],
      training.evaluations.map(
          evaluation =>
              [countText(evaluation.step), evaluation.epoch,
               ...columns.map(([, key, text]) => {
                 const figure = evaluation[key];
                 return figure === undefined ? "—" : text(figure);
               })]));
}

// Whether most of the curve would lie flat under its beginning.
function isSteep(series) {
  const ys = series.flatMap(one => one.points).map(p => p.y).filter(y => y > 0);
  return ys.length > 0 && d3.max(ys) > 20 * d3.median(ys);
}

function trainingFigure(training, saidBefore) {
  const loss = lossSeries(training);
  if (loss.length === 0) return h("p", {class: "facts"}, `${training.file}: ${training.said[0]}`);
  const others = otherSpecs(training);
  let isLog = isSteep(loss);
  const keys = new Set([...loss, ...others.flatMap(spec => spec.series)].map(one => one.key));
  const own = figure({
    title: `Training: ${training.file}`,
    caption: training.said.slice(saidBefore).join(" ") +
        (training.steps > 600 ? " Lines are means of neighbouring steps, shades their range." : ""),
    before: [legend([...keys], key => key), h("div", { class: "controls" },
      toggle("loss on a log scale", isLog, is => { isLog = is; own.redraw(); }))],
    isWide: true,
    draw: (width, id) => {
      const specs = [lossSpec(loss, isLog), ...others];
      return panels(
          width, specs.length, (each, i) => lineChart(each, id, {...specs[i], height: 290}), 380);
    },
    numbers: evaluationNumbers(training),
  });
  return own;
}

// Several trainings in one picture: what they learn from, and how they do.
function comparedTrainings(trainings) {
  const named = (name, points) => seriesOf(
      trainings.map(training => [training.file, points(training, name)]));
  const pictures = [
    ["Loss in training", named("loss", (one, name) => curvePoints(one, name, digits)),
     series => linearAxis(series, "loss", plain)],
    ["Accuracy on the test split",
     named("test_accuracy", (one, name) => evaluationPoints(one, name, fullPercent)),
     series => linearAxis(series, "of all labels", percentText, 1)]
  ].filter(([, series]) => series.length > 1);
  if (pictures.length === 0) return null;
  return figure({
    title: "Trainings beside each other",
    caption: "By their files. The networks, data and machines may differ.",
    before: [legend(trainings.map(training => training.file), key => key)],
    isWide: true,
    draw: (width, id) => panels(
        width, pictures.length,
        (each, i) => {
          const [title, series, y] = pictures[i];
          return lineChart(
              each, id, {title, series, x: stepAxis(series), y: y(series), height: 290});
        },
        380),
  });
}

// The first sentence of the first one stands above all.
function trainingFigures(trainings) {
  return [
    trainings.length > 1 ? comparedTrainings(trainings) : null,
    ...trainings.map((training, i) => trainingFigure(training, i === 0 ? 1 : 0))
  ].filter(node => node !== null);
}
