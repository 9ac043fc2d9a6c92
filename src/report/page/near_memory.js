// Who holds near memory, task by task.

const purposes = [
  ["always near", "resident", "always near: weights, optimizer, small tensors"],
  ["state", "brown", "weights that may leave"],
  ["saved", "blue", "kept for the backward pass"],
  ["passing", "sky", "used up going forward"],
  ["gradient", "orange", "gradients"],
  ["workspace", "purple", "workspaces"],
];

const nearOpacity = 0.66;

function levelAt(holder, time) {
  const after = d3.bisector(entry => entry[0]).right(holder.bytes_from, time);
  return after === 0 ? 0 : holder.bytes_from[after - 1][1];
}

// Holders of near memory at a moment, the largest first.
function holdersAt(process, time) {
  return process.near
      .map(holder => ({name: holder.name, purpose: holder.purpose, bytes: levelAt(holder, time)}))
      .filter(holder => holder.bytes > 0)
      .sort((a, b) => b.bytes - a.bytes);
}

function holderFacts(process, time, budget, count = 6) {
  const holders = holdersAt(process, time);
  const sum = d3.sum(holders, holder => holder.bytes);
  const rest = holders.slice(count);
  return [
    ["in use", budget ? `${bytesText(sum)} of ${bytesText(budget)}` : bytesText(sum)],
    ...holders.slice(0, count).map(holder => [holder.name, bytesText(holder.bytes)]),
    ...(rest.length > 0 ? [[`${rest.length} more`, bytesText(d3.sum(rest, holder => holder.bytes))]]
                        : [])
  ];
}

// By purpose, the bytes at the begin of each task.
function levelsByTask(process) {
  const begins = process.compute.map(span => span[0]);
  const layers = new Map(purposes.map(([name]) => [name, new Float64Array(begins.length)]));
  for (const holder of process.near) {
    const layer = layers.get(holder.purpose);
    if (!layer) continue;
    holder.bytes_from.forEach(([time, bytes], i) => {
      const first = d3.bisectLeft(begins, time);
      const next = holder.bytes_from[i + 1];
      const end = next ? d3.bisectLeft(begins, next[0]) : begins.length;
      for (let task = first; task < end; ++task) layer[task] += bytes;
    });
  }
  return layers;
}

function stackedPaths(layers, x, y, count) {
  const below = new Float64Array(count + 1);
  const area = d3.svg.area().x((_, i) => x(i)).y0((_, i) => y(below[i])).interpolate("step-after");
  return purposes
      .map(([name, variable]) => {
        const own = [...layers.get(name), 0];
        if (count > 0) own[count] = own[count - 1];
        if (d3.max(own) === 0) return null;
        const d = area.y1((_, i) => y(below[i] + own[i]))(own);
        own.forEach((bytes, i) => {
          below[i] += bytes;
        });
        return {d, variable, name};
      })
      .filter(path => path !== null);
}

function drawBudget(svg, budget, y, {left, right}) {
  svg.append("line").attr({class: "budget", x1: left, x2: right, y1: y(budget), y2: y(budget)});
  svg.append("text")
      .attr({class: "direct", x: right, y: y(budget) - 5, "text-anchor": "end"})
      .style("fill", "var(--red)")
      .text(`budget ${bytesText(budget)}`);
}

function nearMemoryPicture(width, id, timeline, process) {
  const count = process.compute.length;
  const layers = levelsByTask(process);
  const totals = d3.range(count).map(i => d3.sum(purposes, ([name]) => layers.get(name)[i]));
  const budget = timeline.budget_bytes;
  const max = Math.max(d3.max(totals), budget ?? 0) * 1.08;
  const [height, margin] = [
    Math.round(Math.min(320, Math.max(240, width * 0.4))),
    {top: 32, right: 14, bottom: 44, left: 62}
  ];
  const x = d3.scale.linear().domain([0, count]).range([margin.left, width - margin.right]);
  const y = d3.scale.linear().domain([0, max]).range([height - margin.bottom, margin.top]);
  const svg =
      d3.select(document.createElementNS("http://www.w3.org/2000/svg", "svg"))
          .attr(
              {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-labelledby": id, tabindex: 0});
  drawAxes(
      svg, {
        x: {
          ticks: linearTicks([0, count], width < 500 ? 4 : 8),
          format: plain,
          label: "task of the step, in order"
        },
        y: {
          ticks: byteTicks(max),
          format: tickBytes,
          label: "near memory"
        }
      },
      x, y, {width, height, margin});
  for (const path of stackedPaths(layers, x, y, count)) {
    svg.append("path").attr({d: path.d, "data-purpose": path.name}).style({
      fill: `var(--${path.variable})`,
      "fill-opacity": nearOpacity
    });
  }
  if (budget) drawBudget(svg, budget, y, {left: margin.left, right: width - margin.right});
  followTasks(svg, timeline, process, x, {top: margin.top, bottom: height - margin.bottom});
  return svg.node();
}

// The task under the pointer, or chosen by the arrow keys, says what is near while it runs.
function followTasks(svg, timeline, process, x, {top, bottom}) {
  const line =
      svg.append("line").attr({y1: top, y2: bottom}).style({stroke: "var(--ink)", display: "none"});
  const node = svg.node();
  let task = -1;
  const show = (i, clientX, clientY) => {
    task = i;
    line.attr({x1: x(i + 0.5), x2: x(i + 0.5)}).style("display", null);
    const span = process.compute[i];
    showTip(clientX, clientY, span[2], holderFacts(process, span[0], timeline.budget_bytes));
  };
  const leave = () => {
    task = -1;
    line.style("display", "none");
    hideTip();
  };
  const scale = () => node.viewBox.baseVal.width / node.getBoundingClientRect().width;
  node.addEventListener("pointermove", event => {
    const i = Math.floor(x.invert((event.clientX - node.getBoundingClientRect().left) * scale()));
    if (i >= 0 && i < process.compute.length)
      show(i, event.clientX, event.clientY);
    else
      leave();
  });
  node.addEventListener("pointerleave", leave);
  node.addEventListener("blur", leave);
  node.addEventListener("keydown", event => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!step) return;
    event.preventDefault();
    const i = Math.min(process.compute.length - 1, Math.max(0, task + step));
    const box = node.getBoundingClientRect();
    show(i, box.left + x(i) / scale(), box.top + top / scale());
  });
}

function nearMemoryFigure(timeline) {
  const process =
      [...timeline.processes].reverse().find(one => one.near.length > 0 && one.compute.length > 0);
  if (!process) return null;
  const present = new Set(process.near.map(holder => holder.purpose));
  const live =
      timeline.on_demand ? "Blocks that are in use, whether near or paged out" : "What is near";
  return figure({
    title: `Memory per task, ${process.name}`,
    caption: `${
        live} when each task begins, by what it is for. Point at a task for its largest blocks. ${
        timeline.file}`,
    before: [swatches(purposes.filter(([name]) => present.has(name))
                          .map(([, variable, text]) => [text, variable, false, nearOpacity]))],
    isWide: true,
    draw: (width, id) => nearMemoryPicture(width, id, timeline, process),
  });
}
