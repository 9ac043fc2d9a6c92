// Pictures of lines and points, at any width.

let figures = 0;

// A picture with its title, an explanation, and its numbers for those who cannot see it.
// `draw(width, id)` returns what is in the picture; it is called again for another width.
function figure({title, caption, draw, before = [], numbers = null, isWide = false}) {
  const id = `figure-${++figures}`;
  const picture = h("div", {class: "picture"});
  const render = width => picture.replaceChildren(...[draw(width, id)].flat());
  drawn(picture, render);
  const node =
      h("figure", {class: isWide ? "wide" : null},
        h("figcaption", {id}, h("strong", {}, title), h("span", {}, caption)), before, picture,
        numbers && h("details", {class: "numbers"}, h("summary", {}, "Numbers"), numbers));
  node.redraw = () => render(Math.floor(picture.clientWidth));
  return node;
}

function toggle(name, isOn, change) {
  const button =
      h("button", {type: "button", class: "control", "aria-pressed": String(isOn)}, name);
  button.addEventListener("click", () => {
    isOn = !isOn;
    button.setAttribute("aria-pressed", String(isOn));
    change(isOn);
  });
  return button;
}

function makeScale(axis, range) {
  const scale = axis.isLog ? d3.scale.log() : d3.scale.linear();
  return scale.domain(axis.domain).range(range);
}

const nearness = {
  gap: 14,
  reach: 40
};

// Labels beside the ends of lines, moved apart.
function placeLabels(ends, top, bottom) {
  const sorted = [...ends].sort((a, b) => a.y - b.y);
  sorted.forEach((end, i) => {
    end.labelY = Math.max(end.y, i > 0 ? sorted[i - 1].labelY + nearness.gap : top);
  });
  const over = sorted.length > 0 ? sorted.at(-1).labelY - bottom : 0;
  for (let i = sorted.length - 1, limit = bottom; over > 0 && i >= 0; --i, limit -= nearness.gap) {
    sorted[i].labelY = Math.min(sorted[i].labelY, limit);
  }
  return sorted;
}

// spec: {x, y: {domain, isLog, ticks, format, label}, series: [{key, name, points: [{x, y, min,
// max, title, facts, open}], isLoose, isDense}], marks: [{x, name}], band: share or 0, title,
// hasLabels, height}. A loose series is points without a line, a dense one a line without points.
function lineChart(width, id, spec) {
  const {hasLabels} = spec;
  const longest = d3.max(spec.series, one => one.name.length) ?? 0;
  const margin = {
    top: 32 + (spec.title ? 14 : 0),
    right: hasLabels ? Math.min(128, 16 + 6.7 * longest) : 12,
    bottom: 44,
    left: 54
  };
  const height = spec.height ?? Math.round(Math.min(360, Math.max(240, width * 0.62)));
  const x = makeScale(spec.x, [margin.left, width - margin.right]);
  const y = makeScale(spec.y, [height - margin.bottom, margin.top]);
  const svg =
      d3.select(document.createElementNS("http://www.w3.org/2000/svg", "svg"))
          .attr(
              {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-labelledby": id, tabindex: 0});
  drawAxes(svg, spec, x, y, {width, height, margin});
  if (spec.band) drawBand(svg, spec, x, y);
  for (const mark of spec.marks ?? []) drawMark(svg, mark, x, margin, height);
  for (const one of spec.series) drawSeries(svg, one, x, y);
  if (hasLabels) drawLabels(svg, spec.series, x, y, {width, height, margin});
  followPointer(svg.node(), spec.series, x, y);
  return svg.node();
}

function drawAxes(svg, spec, x, y, {width, height, margin}) {
  const bottom = height - margin.bottom;
  for (const tick of spec.y.ticks) {
    svg.append("line").attr(
        {class: "grid", x1: margin.left, x2: width - margin.right, y1: y(tick), y2: y(tick)});
    svg.append("text")
        .attr({x: margin.left - 8, y: y(tick), dy: ".32em", "text-anchor": "end"})
        .text(spec.y.format(tick));
  }
  let previous = -Infinity;
  for (const tick of [...spec.x.ticks].sort((a, b) => x(a) - x(b))) {
    svg.append("line").attr({class: "axis", x1: x(tick), x2: x(tick), y1: bottom, y2: bottom + 4});
    const text = spec.x.format(tick);
    const half = text.length * 3.3;
    if (x(tick) - half < previous + 8) continue;
    previous = x(tick) + half;
    svg.append("text").attr({x: x(tick), y: bottom + 18, "text-anchor": "middle"}).text(text);
  }
  svg.append("line").attr(
      {class: "axis", x1: margin.left, x2: width - margin.right, y1: bottom, y2: bottom});
  svg.append("text")
      .attr({
        class: "axis-name",
        x: (margin.left + width - margin.right) / 2,
        y: height - 6,
        "text-anchor": "middle"
      })
      .text(spec.x.label);
  svg.append("text").attr({class: "axis-name", x: 0, y: margin.top - 13}).text(spec.y.label);
  if (spec.title)
    svg.append("text").attr({class: "panel-title", x: 0, y: 12}).text(spec.title);
}

function drawBand(svg, spec, x, y) {
  const [from, to] = spec.x.domain;
  const clip = `clip-${++figures}`;
  const [bottom, top] = y.range();
  svg.append("clipPath")
      .attr("id", clip)
      .append("rect")
      .attr({x: x(from), y: top, width: x(to) - x(from), height: bottom - top});
  const steps = d3.range(0, 1.001, 0.05).map(part => from * Math.pow(to / from, part));
  svg.append("path")
      .attr({class: "band", "clip-path": `url(#${clip})`})
      .attr(
          "d",
          d3.svg.area()
              .x(x)
              .y0(value => y(value * (1 - spec.band)))
              .y1(value => y(value * (1 + spec.band)))(steps));
  svg.append("line").attr({class: "mark-line", x1: x(from), y1: y(from), x2: x(to), y2: y(to)});
}

function drawMark(svg, mark, x, margin, height) {
  svg.append("line").attr({
    class: "mark-line",
    x1: x(mark.x),
    x2: x(mark.x),
    y1: margin.top,
    y2: height - margin.bottom
  });
  const [from, to] = x.range();
  const isRight = x(mark.x) > (from + to) / 2;
  svg.append("text")
      .attr({
        x: x(mark.x) + (isRight ? -5 : 5),
        y: height - margin.bottom - 7,
        "text-anchor": isRight ? "end" : "start"
      })
      .text(mark.name);
}

function drawSeries(svg, one, x, y) {
  const {colour: paint, symbol, dash} = look(one.key);
  const group = svg.append("g").attr("data-series", one.name);
  if (one.isDense) drawRange(group, one, x, y, paint);
  if (!one.isLoose) {
    group.append("path")
        .attr({class: "series", "stroke-dasharray": dash})
        .style("stroke", paint)
        .attr("d", d3.svg.line().x(p => x(p.x)).y(p => y(p.y))(one.points.filter(p => !p.open)));
  }
  if (one.isDense) return;
  for (const p of one.points) {
    if (p.min !== undefined && p.max > p.min) {
      const ends = [y(p.min), y(p.max)];
      group.append("path")
          .attr("class", "spread")
          .style("stroke", paint)
          .attr(
              "d",
              `M${x(p.x)} ${ends[0]}V${ends[1]}M${x(p.x) - 3} ${ends[0]}h6M${x(p.x) - 3} ${
                  ends[1]}h6`);
    }
    group.append("path")
        .attr({
          class: "point",
          d: d3.svg.symbol().type(symbol).size(p.open ? 42 : 46)(),
          transform: `translate(${x(p.x)},${y(p.y)})`
        })
        .style("fill", p.open ? "var(--paper)" : paint)
        .style("stroke", p.open ? paint : "var(--paper)")
        .style("stroke-width", p.open ? 1.4 : 1);
  }
}

// From the smallest to the largest number that a point stands for, as far as it is in the picture.
function drawRange(group, one, x, y, paint) {
  const [bottom, top] = y.range();
  const within = value => Math.min(bottom, Math.max(top, value > 0 || !y.base ? y(value) : bottom));
  group.append("path")
      .attr("class", "range")
      .style("fill", paint)
      .attr(
          "d",
          d3.svg.area().x(p => x(p.x)).y0(p => within(p.min)).y1(p => within(p.max))(one.points));
}

function drawLabels(svg, series, x, y, {width, height, margin}) {
  const edge = width - margin.right;
  const ends = series.map(one => {
    const filled = one.points.filter(p => !p.open);
    const last = filled.reduce((a, b) => (x(b.x) > x(a.x) ? b : a), filled[0]);
    return {name: one.name, key: one.key, x: x(last.x), y: y(last.y)};
  });
  const atEdge = ends.filter(end => edge - end.x < nearness.reach);
  for (const end of placeLabels(atEdge, margin.top + 6, height - margin.bottom - 2)) {
    if (Math.abs(end.labelY - end.y) > 5) {
      svg.append("line").attr(
          {class: "leader", x1: end.x + 6, y1: end.y, x2: edge + 8, y2: end.labelY});
    }
    svg.append("text")
        .attr({class: "direct", x: edge + 10, y: end.labelY, dy: ".32em"})
        .style("fill", look(end.key).colour)
        .text(end.name);
  }
  for (const end of ends.filter(one => !atEdge.includes(one))) {
    svg.append("text")
        .attr({class: "direct", x: end.x, y: end.y - 10, "text-anchor": "middle"})
        .style("fill", look(end.key).colour)
        .text(end.name);
  }
}

// Which of points that are `at` a place in the picture is the nearest to `from`; -1: none is near.
function nearestPoint(points, from) {
  const away = points.map(p => Math.hypot(p.at[0] - from[0], p.at[1] - from[1]));
  const best = away.indexOf(Math.min(...away));
  return best >= 0 && away[best] < nearness.reach ? best : -1;
}

// Where an event is, in the units of the picture.
function placeOf(event, svg) {
  const box = svg.getBoundingClientRect();
  const scale = svg.viewBox.baseVal.width / box.width;
  return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
}

// The nearest point tells about itself: under the pointer, or by the arrow keys.
function followPointer(svg, series, x, y) {
  const points = series.flatMap(one => one.points.map(p => ({...p, at: [x(p.x), y(p.y)]})))
                     .sort((a, b) => a.at[0] - b.at[0] || a.at[1] - b.at[1]);
  const ring = d3.select(svg)
                   .append("circle")
                   .attr({r: 8, fill: "none", "stroke-width": 1.5})
                   .style("stroke", "var(--ink)")
                   .style("display", "none");
  let chosen = -1;
  const show = i => {
    chosen = i;
    ring.attr({cx: points[i].at[0], cy: points[i].at[1]}).style("display", null);
    const box = svg.getBoundingClientRect();
    const scale = box.width / svg.viewBox.baseVal.width;
    showTip(
        box.left + points[i].at[0] * scale, box.top + points[i].at[1] * scale, points[i].title,
        points[i].facts);
  };
  const leave = () => {
    chosen = -1;
    ring.style("display", "none");
    hideTip();
  };
  svg.addEventListener("pointermove", event => {
    const best = nearestPoint(points, placeOf(event, svg));
    if (best >= 0)
      show(best);
    else
      leave();
  });
  svg.addEventListener("pointerleave", leave);
  svg.addEventListener("blur", leave);
  svg.addEventListener("keydown", event => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!step || points.length === 0) return;
    event.preventDefault();
    show((chosen + step + points.length) % points.length);
  });
}

// Several small pictures side by side, each at least so wide.
function panels(width, count, drawOne, least = 246) {
  const columns = Math.max(1, Math.min(count, Math.floor((width + 16) / (least + 16))));
  const each = Math.floor((width - 16 * (columns - 1)) / columns);
  return h(
      "div", {class: "panels", style: `grid-template-columns:repeat(${columns},minmax(0,1fr))`},
      d3.range(count).map(i => drawOne(each, i)));
}

function linearTicks(domain, count = 5) {
  return d3.scale.linear().domain(domain).ticks(count);
}
// At most six ticks, a power of two apart.
function byteTicks(max) {
  return d3.range(0, max, Math.pow(2, Math.ceil(Math.log(max / 6) / Math.LN2)));
}
function tickBytes(bytes) {
  return bytes === 0 ? "0" : bytesText(bytes);
}
function powers(from, to, base) {
  const first = Math.ceil(Math.log(from) / Math.log(base) - 1e-9);
  const last = Math.floor(Math.log(to) / Math.log(base) + 1e-9);
  return d3.range(first, last + 1).map(power => Math.pow(base, power));
}
