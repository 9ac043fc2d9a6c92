// A timeline on a canvas: what is where, drawing it, and finding what lies under a point.

const laneSizes = {
  compute: 26,
  offload: 13,
  prefetch: 13,
  near: 74
};
const laneNames = {
  compute: "compute",
  offload: "out",
  prefetch: "in",
  near: "near"
};

function prepareTimeline(timeline) {
  for (const process of timeline.processes) {
    for (const lane of ["compute", "stalls", "offload", "prefetch", "curve"]) {
      process[lane].sort((a, b) => a[0] - b[0]);
    }
    process.end =
        d3.max(["compute", "stalls", "offload", "prefetch"].flatMap(
            lane => process[lane].length > 0 ? [d3.max(process[lane], span => span[0] + span[1])]
                                             : [])) ??
        0;
    process.stalled = d3.sum(process.stalls, span => span[1]);
  }
  timeline.end = d3.max(timeline.processes, process => process.end) ?? 0;
}

class TimelineScene {
  constructor(timeline) {
    this.timeline = timeline;
    this.lanes = [];
    this.headings = [];
    let y = 0;
    for (const process of timeline.processes) {
      this.headings.push({y: y + 13, process});
      y += 20;
      for (const kind of ["compute", "offload", "prefetch", "near"]) {
        const isOfUse = one => (kind === "near" ? one.curve : one[kind]).length > 0;
        if (!timeline.processes.some(isOfUse)) continue;
        this.lanes.push({process, kind, y, height: laneSizes[kind]});
        y += laneSizes[kind] + (kind === "prefetch" ? 8 : 3);
      }
      y += 14;
    }
    this.height = y + 38;
  }

  resize(width) {
    this.width = width;
    this.left = width < 560 ? 58 : 66;
    this.x = d3.scale.linear().range([this.left, width - 6]);
    this.paints = Object.fromEntries([
      "ink", "soft", "line", "paper", "wash", "forward", "backward", "update", "again", "red",
      "green", "orange", "blue", "sans"
    ].map(name => [name, colour(name)]));
  }

  // `view` is [from, to] in microseconds.
  draw(context, view, chosen) {
    this.x.domain(view);
    context.clearRect(0, 0, this.width, this.height);
    context.font = `12px ${this.paints.sans}`;
    this.drawAxis(context);
    for (const lane of this.lanes) this.drawLane(context, lane, view);
    for (const {y, process} of this.headings) this.drawHeading(context, y, process);
    if (chosen) this.drawChosen(context, chosen);
  }

  drawHeading(context, y, process) {
    context.fillStyle = this.paints.ink;
    context.font = `600 12.5px ${this.paints.sans}`;
    context.fillText(process.name, 0, y);
    const after = context.measureText(process.name).width + 10;
    context.font = `12px ${this.paints.sans}`;
    context.fillStyle = this.paints.soft;
    const waits =
        process.stalled > 0 ? `, waits ${secondsText(process.stalled / 1e6)}` : ", never waits";
    context.fillText(secondsText(process.end / 1e6) + waits, after, y);
  }

  drawAxis(context) {
    context.lineWidth = 1;
    const y = this.height - 34;
    for (const tick of this.x.ticks(Math.max(2, Math.floor(this.width / 130)))) {
      const at = Math.round(this.x(tick)) + 0.5;
      context.strokeStyle = this.paints.line;
      context.beginPath();
      context.moveTo(at, 18);
      context.lineTo(at, y);
      context.stroke();
      context.fillStyle = this.paints.soft;
      context.textAlign = at > this.width - 22 ? "right" : "center";
      context.fillText(tickSeconds(tick / 1e6), Math.min(at, this.width), y + 15);
    }
    context.textAlign = "center";
    context.fillText("time since the step began", (this.left + this.width) / 2, this.height - 4);
    context.textAlign = "left";
  }

  drawLane(context, lane, view) {
    context.fillStyle = this.paints.soft;
    context.fillText(
        laneNames[lane.kind], 0, lane.y + Math.min(lane.height / 2 + 4, 12 + lane.height / 6));
    if (lane.kind === "near") this.drawPeak(context, lane);
    context.save();
    context.beginPath();
    context.rect(this.left, lane.y, this.width - 6 - this.left, lane.height);
    context.clip();
    if (lane.kind === "near") {
      this.drawCurve(context, lane);
    } else if (lane.kind === "compute") {
      this.drawSpans(context, lane, lane.process.compute, view, span => this.computePaint(span));
      this.drawStalls(context, lane, view);
    } else {
      context.fillStyle = this.paints.wash;
      context.fillRect(this.left, lane.y, this.width, lane.height);
      const paint = lane.kind === "offload" ? this.paints.green : this.paints.orange;
      this.drawSpans(context, lane, lane.process[lane.kind], view, () => paint);
    }
    context.restore();
  }

  // The scale of the curve: its highest point.
  drawPeak(context, lane) {
    const peak = d3.max(lane.process.curve, sample => sample[1]) ?? 0;
    if (peak === 0) return;
    context.font = `11px ${this.paints.sans}`;
    context.fillText("at most", 0, lane.y + 43);
    context.fillText(bytesText(peak), 0, lane.y + 57);
    context.font = `12px ${this.paints.sans}`;
  }

  computePaint(span) {
    if (span[2].endsWith("(recomputed)")) return this.paints.again;
    return this.paints[span[4]] ?? this.paints.forward;
  }

  // Spans within one column of pixels are drawn as one: ten thousand cost no more than the width.
  drawSpans(context, lane, spans, view, paintOf) {
    let drawnUpTo = -Infinity;
    for (let i = firstEndingAfter(spans, view[0]); i < spans.length && spans[i][0] < view[1]; ++i) {
      const from = this.x(spans[i][0]);
      const to = this.x(spans[i][0] + spans[i][1]);
      if (to < drawnUpTo + 0.5) continue;
      const size = Math.max(to - from, 0.6);
      const paint = paintOf(spans[i]);
      context.fillStyle = paint;
      context.fillRect(from, lane.y, size, lane.height);
      drawnUpTo = to;
      if (size > 7) {
        context.fillStyle = this.paints.paper;
        context.fillRect(to - 0.5, lane.y, 0.5, lane.height);
      }
      if (size > 48 && lane.height > 12) {
        context.fillStyle = paint === this.paints.forward || paint === this.paints.update
            ? this.paints.ink
            : this.paints.paper;
        this.drawName(
            context, lane, spans[i][2], Math.max(from, this.left), Math.min(to, this.width));
      }
    }
  }

  drawName(context, lane, name, from, to) {
    const room = Math.floor((to - from - 8) / 6.2);
    if (room < 4) return;
    context.font = `${lane.height > 20 ? 11.5 : 10}px ${this.paints.sans}`;
    context.fillText(
        name.length > room ? name.slice(0, room - 1) + "…" : name, from + 4,
        lane.y + lane.height / 2 + 4);
    context.font = `12px ${this.paints.sans}`;
  }

  // Waiting is marked by stripes, too, not by colour alone.
  drawStalls(context, lane, view) {
    const spans = lane.process.stalls;
    for (let i = firstEndingAfter(spans, view[0]); i < spans.length && spans[i][0] < view[1]; ++i) {
      const from = Math.max(this.x(spans[i][0]), this.left);
      const to = Math.min(this.x(spans[i][0] + spans[i][1]), this.width);
      if (to - from < 0.3) continue;
      context.fillStyle = this.paints.red;
      context.fillRect(from, lane.y, Math.max(to - from, 0.8), lane.height);
      if (to - from < 5) continue;
      context.save();
      context.beginPath();
      context.rect(from, lane.y, to - from, lane.height);
      context.clip();
      context.strokeStyle = this.paints.paper;
      context.beginPath();
      for (let at = from - lane.height; at < to; at += 6) {
        context.moveTo(at, lane.y + lane.height);
        context.lineTo(at + lane.height, lane.y);
      }
      context.stroke();
      context.restore();
    }
  }

  drawCurve(context, lane) {
    if (lane.process.curve.length === 0) return;
    const budget = this.timeline.budget_bytes || null;
    const max = Math.max(d3.max(lane.process.curve, sample => sample[1]), budget ?? 0) * 1.35 || 1;
    const y = bytes => lane.y + lane.height * (1 - bytes / max);
    context.fillStyle = this.paints.blue;
    context.globalAlpha = 0.35;
    const {curve, end} = lane.process;
    const last = Math.min(this.width - 6, this.x(end));
    let sample =
        Math.max(0, d3.bisector(entry => entry[0]).right(curve, this.x.invert(this.left)) - 1);
    context.beginPath();
    context.moveTo(this.left, y(0));
    for (let column = this.left; column < last; ++column) {  // each shows its highest moment
      const until = this.x.invert(column + 1);
      let high = curve[sample][1];
      while (sample + 1 < curve.length && curve[sample + 1][0] < until)
        high = Math.max(high, curve[++sample][1]);
      context.lineTo(column, y(high));
      context.lineTo(Math.min(column + 1, last), y(high));
    }
    context.lineTo(last, y(0));
    context.fill();
    context.globalAlpha = 1;
    if (budget === null) return;
    context.strokeStyle = this.paints.red;
    context.setLineDash([7, 3]);
    context.beginPath();
    context.moveTo(this.left, y(budget));
    context.lineTo(this.width, y(budget));
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = this.paints.red;
    context.textAlign = "right";
    context.fillText(
        `budget ${bytesText(this.timeline.budget_bytes)}`, this.width - 10, y(budget) - 4);
    context.textAlign = "left";
  }

  drawChosen(context, {lane, span, time}) {
    context.strokeStyle = this.paints.ink;
    context.lineWidth = 1;
    if (span) {
      const from = Math.max(this.x(span[0]), this.left);
      const to = Math.min(this.x(span[0] + span[1]), this.width - 6);
      context.lineWidth = 2;
      context.strokeRect(from, lane.y, Math.max(to - from, 1), lane.height);
    } else if (time !== undefined) {
      const at = Math.round(this.x(time)) + 0.5;
      context.beginPath();
      context.moveTo(at, lane.y);
      context.lineTo(at, lane.y + lane.height);
      context.stroke();
    }
  }

  // The lane at a point, its span there, if any, and the time.
  find(pointX, pointY) {
    if (pointX < this.left) return null;
    const lane = this.lanes.find(one => pointY >= one.y && pointY <= one.y + one.height);
    if (!lane) return null;
    const time = this.x.invert(pointX);
    const slack = this.x.invert(pointX + 2) - time;
    const spans = lane.kind === "near" ? []
        : lane.kind === "compute"      ? [lane.process.compute, lane.process.stalls]
                                       : [lane.process[lane.kind]];
    for (const within of [0, slack]) {
      for (const all of spans) {
        const span = all[firstEndingAfter(all, time - within)];
        if (span && span[0] <= time + within)
          return {lane, span, time, isStall: all === lane.process.stalls};
      }
    }
    return {lane, time};
  }
}

function firstEndingAfter(spans, time) {
  return d3.bisector(span => span[0] + span[1]).right(spans, time);
}
