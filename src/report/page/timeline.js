// A timeline with its controls: wheel, drag, pinch, keys.

function spanFacts(timeline, {lane, span, isStall}) {
  const facts = [["begins", secondsText(span[0] / 1e6)], ["takes", secondsText(span[1] / 1e6)]];
  if (lane.kind !== "compute") {
    facts.unshift(["direction", lane.kind === "offload" ? "out, near to far" : "in, far to near"]);
    facts.push(["bytes", bytesText(span[3])]);
    if (span[3] > 0 && span[1] > 0) facts.push(["rate", rateText(span[3] / (span[1] / 1e6))]);
    if (span[3] === 0) facts.push(["nothing moves", "the far copy is still right"]);
  } else if (!isStall) {
    if (span[3] && span[3] !== "default") facts.push(["algorithm", span[3]]);
    const place = lane.process.compute.indexOf(span);
    for (const other of timeline.processes) {
      const same = other.compute[place];
      if (other !== lane.process && same?.[2] === span[2])
        facts.push([`in ${other.name}`, secondsText(same[1] / 1e6)]);
    }
    if (lane.process.near.length > 0)
      facts.push(
          ["near memory", holderFacts(lane.process, span[0], timeline.budget_bytes, 0)[0][1]]);
  }
  return facts;
}

function foundTip(timeline, found) {
  if (found.span) {
    const name = found.isStall ? `waiting ${found.span[2]}` : found.span[2];
    return [name, spanFacts(timeline, found)];
  }
  if (found.lane.kind !== "near") return null;
  const {process} = found.lane;
  if (process.near.length > 0)
    return [
      `near memory at ${secondsText(found.time / 1e6)}`,
      holderFacts(process, found.time, timeline.budget_bytes)
    ];
  const place = d3.bisector(sample => sample[0]).right(process.curve, found.time) - 1;
  return ["near memory", [["in use", bytesText(process.curve[place]?.[1] ?? 0)]]];
}

class TimelineView {
  constructor(timeline) {
    this.timeline = timeline;
    this.scene = new TimelineScene(timeline);
    this.view = [0, timeline.end];
    this.chosen = null;
    this.pointers = new Map();
    this.canvas = h("canvas", {
      tabindex: 0,
      role: "img",
      "aria-describedby": "timeline-keys",
      "aria-label": `Timeline of ${timeline.file}`
    });
    this.place = h("div", {class: "picture timeline"}, this.canvas);
    drawn(this.place, width => this.resize(width), true);
    this.listen();
  }

  resize(width) {
    const density =
        Math.max(isPrinting ? 2 : 1, devicePixelRatio);  // paper has more dots than most screens
    this.scene.resize(width);
    this.canvas.width = width * density;
    this.canvas.height = this.scene.height * density;
    this.canvas.style.aspectRatio = `${width} / ${this.scene.height}`;
    this.context = this.canvas.getContext("2d");
    this.context.scale(density, density);
    this.paint();
  }

  paint() {
    this.scene.draw(this.context, this.view, this.chosen);
  }

  later() {
    if (this.isWaiting) return;
    this.isWaiting = true;
    requestAnimationFrame(() => {
      this.isWaiting = false;
      this.paint();
    });
  }

  look(from, to) {
    const min = Math.min(this.timeline.end, 2);  // microseconds
    const size = Math.min(this.timeline.end, Math.max(min, to - from));
    const start = Math.min(Math.max(0, from), this.timeline.end - size);
    this.view = [start, start + size];
    this.later();
  }

  zoom(factor, around = (this.view[0] + this.view[1]) / 2) {
    const [from, to] = this.view;
    const part = (around - from) / (to - from || 1);
    const size = Math.min(this.timeline.end, Math.max(2, (to - from) * factor));
    this.look(around - part * size, around + (1 - part) * size);
  }

  pan(part) {
    const by = part * (this.view[1] - this.view[0]);
    this.look(this.view[0] + by, this.view[1] + by);
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const scale = this.scene.width / box.width;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  }

  hover(event) {
    const found = this.scene.find(...this.at(event));
    const tipOf = found && foundTip(this.timeline, found);
    this.chosen = tipOf ? found : null;
    this.later();
    if (tipOf)
      showTip(event.clientX, event.clientY, ...tipOf);
    else
      hideTip();
  }

  listen() {
    const {canvas} = this;
    canvas.addEventListener("wheel", event => {
      const isAll = this.view[1] - this.view[0] >= this.timeline.end;
      if (isAll && event.deltaY > 0) return;  // the page scrolls on
      event.preventDefault();
      hideTip();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY))
        return this.pan(event.deltaX / this.scene.width);
      this.zoom(Math.exp(event.deltaY * 0.002), this.scene.x.invert(this.at(event)[0]));
    }, {passive: false});
    canvas.addEventListener("pointerdown", event => {
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, this.at(event));
      if (event.pointerType !== "mouse") this.hover(event);
    });
    canvas.addEventListener("pointermove", event => this.move(event));
    for (const end of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(end, event => this.pointers.delete(event.pointerId));
    }
    canvas.addEventListener("pointerleave", event => {
      if (event.pointerType === "mouse") this.forget();
    });
    canvas.addEventListener("blur", () => this.forget());
    canvas.addEventListener("keydown", event => this.key(event));
  }

  forget() {
    this.chosen = null;
    hideTip();
    this.later();
  }

  // One pointer drags, two pinch.
  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return this.hover(event);
    const now = this.at(event);
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
    this.pointers.set(event.pointerId, now);
    hideTip();
    const {x} = this.scene;
    if (others.length === 0)
      return this.pan((before[0] - now[0]) / (this.scene.width - this.scene.left));
    const apart = Math.max(8, Math.abs(before[0] - others[0][0]));
    this.zoom(
        apart / Math.max(8, Math.abs(now[0] - others[0][0])),
        x.invert((now[0] + others[0][0]) / 2));
  }

  key(event) {
    const keys = {
      ArrowLeft: () => this.pan(-0.2),
      ArrowRight: () => this.pan(0.2),
      "+": () => this.zoom(0.6),
      "=": () => this.zoom(0.6),
      "-": () => this.zoom(1 / 0.6),
      0: () => this.look(0, this.timeline.end),
      n: () => this.step(1),
      p: () => this.step(-1),
      s: () => this.nextStall()
    };
    const act = event.ctrlKey || event.metaKey || event.altKey ? null : keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  // The next or the previous task, by the keyboard.
  step(by) {
    const lane = this.chosen?.lane.kind === "compute"
        ? this.chosen.lane
        : this.scene.lanes.find(one => one.kind === "compute");
    const spans = lane?.process.compute ?? [];
    if (spans.length === 0) return;
    const now = spans.indexOf(this.chosen?.span);
    const next = now < 0 ? firstEndingAfter(spans, this.view[0]) : now + by;
    this.choose({lane, span: spans[Math.min(spans.length - 1, Math.max(0, next))]});
  }

  // The next wait after the middle of what is seen, in the last timeline: the measured one, if
  // there is one.
  nextStall() {
    const lane =
        this.scene.lanes.filter(one => one.kind === "compute" && one.process.stalls.length > 0)
            .at(-1);
    if (!lane) return;
    const long = lane.process.stalls.filter(span => span[1] >= lane.process.end * 1e-3);
    const stalls = long.length > 0 ? long : lane.process.stalls;
    const from = this.chosen?.isStall ? this.chosen.span[0] : -1;
    const span = stalls.find(one => one[0] > from) ?? stalls[0];
    const around = Math.max(span[1] * 4, this.timeline.end / 40);
    this.look(span[0] + span[1] / 2 - around, span[0] + span[1] / 2 + around);
    this.choose({lane, span, isStall: true});
  }

  choose(chosen) {
    this.chosen = chosen;
    const {span, lane} = chosen;
    if (span[0] < this.view[0] || span[0] + span[1] > this.view[1]) {
      const half = (this.view[1] - this.view[0]) / 2;
      this.look(span[0] + span[1] / 2 - half, span[0] + span[1] / 2 + half);
    }
    this.paint();
    const box = this.canvas.getBoundingClientRect();
    const scale = box.width / this.scene.width;
    showTip(
        box.left + this.scene.x(span[0] + span[1] / 2) * scale,
        box.top + (lane.y + lane.height) * scale, ...foundTip(this.timeline, chosen));
  }
}

function timelineFigure(timeline) {
  const view = new TimelineView(timeline);
  const hasStalls = timeline.processes.some(process => process.stalls.length > 0);
  const button = (name, act) => {
    const node = h("button", {type: "button", class: "control"}, name);
    node.addEventListener("click", act);
    return node;
  };
  const planner = timeline.planner ? `Plan of ${timeline.planner}` : "A plan";
  const budget = timeline.budget_bytes ? ` within ${bytesText(timeline.budget_bytes)}` : "";
  return h(
      "figure", {class: "wide"},
      h("figcaption", {}, h("strong", {}, `One step: ${timeline.file}`),
        h("span", {},
          `${planner}${budget}. Wheel or pinch to zoom, drag to move; with the keyboard + − 0, ` +
              "arrows, n and p for the next and previous task, s for the next wait.")),
      swatches([
        ["forward", "forward"], ["backward", "backward"], ["update", "update"],
        ["run again", "again"], ["waiting", "red", true], ["out, near to far", "green"],
        ["in, far to near", "orange"], ["near memory in use", "blue", false, 0.35]
      ]),
      h("div", {class: "controls"}, button("Zoom in", () => view.zoom(0.5)),
        button("Zoom out", () => view.zoom(2)),
        button("Whole step", () => view.look(0, timeline.end)),
        hasStalls ? button("Next wait", () => view.nextStall()) : null),
      view.place);
}
