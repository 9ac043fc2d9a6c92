"""Lines that can be told apart: without colour vision, on grey paper, and by their labels."""

import math
import textwrap

import matplotlib

matplotlib.use("Agg")  # no display
matplotlib.rcParams.update({"axes.titlesize": 9.5, "axes.labelsize": 9, "svg.fonttype": "none"})
from matplotlib import pyplot
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, NullLocator

# Okabe and Ito's colours, which people without full colour vision tell apart, from dark to light
# and each with a dash and a marker of its own, so that they differ in grey too.
COLOURS = ["#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]
DASHES = ["-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)), (0, (3, 1, 1, 1, 1, 1))]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "<", ">", "*"]
SHADE = "0.9"
MOST_LABELS = 8  # more lines than that leave no room among them

# Ratios worth a tick, the most welcome first.
TICKS = [1, 2, 0.5, 5, 10, 1.5, 1.2, 1.1, 3, 0.8, 0.7, 1.05, 1.35, 0.6, 0.9, 4, 7, 0.4, 0.3, 20, 50,
         100, 1.15, 1.25, 1.75, 2.5, 0.2, 15, 30, 1.02, 1.01, 1.03, 1.08]


def all_names(series):
    return [name for name, _, _ in series]


def style(index):
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": DASHES[index % len(DASHES)],
            "marker": MARKERS[index % len(MARKERS)]}


def legend_width(names):
    """Inches."""
    return 0.75 + 0.075 * max([24, *(len(name) for name in names)])


def figure(rows, columns, names, width=4.2, note=""):
    """A grid of axes; room on the right for the names of the lines, and a note below them."""
    right = legend_width(names)
    whole = width * columns + right
    told = textwrap.fill(note, int(right / 0.066))
    below = 0.45 + 0.195 * (len(names) + 1)  # inches that the names take
    height = max(3.1 * rows, below + 0.2 + 0.15 * (told.count("\n") + 1))
    made, axes = pyplot.subplots(rows, columns, squeeze=False, figsize=(whole, height))
    made.set_layout_engine("constrained", rect=(0, 0, 1 - right / whole, 1))
    made.text(1 - right / whole + 0.1 / whole, 1 - below / height, told, fontsize=7.5, va="top",
              color="0.3", linespacing=1.3)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color="0.9", linewidth=0.7)
        axis.set_axisbelow(True)
        axis.tick_params(labelsize=8)
    return made, axes


def draw(axis, names, series, is_curve=False):
    """Each line in the style of its name, the first name on top; markers are whole at the frame,
    too. A curve is a value a step, without markers."""
    for name, xs, ys in series:
        index = names.index(name)
        look = style(index)
        if is_curve:
            look.update(marker="", drawstyle="steps-post")
        axis.plot(xs, ys, linewidth=1.6, markersize=4, markeredgewidth=0, zorder=30 - index,
                  label=name, clip_on=False, **look)


def ratio_axis(axis):
    """A logarithmic axis with ticks where ratios are read; at least from 1 to 1.05."""
    low, high = min(axis.dataLim.y0, 1), max(axis.dataLim.y1, 1.05)
    room = (high / low) ** 0.05
    axis.set_yscale("log")
    axis.set_ylim(low / room, high * room)
    low, high = axis.get_ylim()
    nearest = math.log(high / low) / 12
    ticks = []
    for tick in TICKS:
        if low <= tick <= high and all(abs(math.log(tick / other)) >= nearest for other in ticks):
            ticks.append(tick)
    axis.yaxis.set_major_locator(FixedLocator(sorted(ticks)))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(lambda tick, _: f"{tick:g}")
    axis.axhline(1, color="0.35", linewidth=0.8, zorder=1)


def link_axis(axis, factors):
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(FixedLocator(factors))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(lambda factor, _: f"x{factor:g}")


def say(axis, sentence, where="middle"):
    """A sentence in the middle of a picture, or at its top, over what is drawn there."""
    at, align = {"middle": (0.5, "center"), "top": (0.985, "top")}[where]
    axis.text(0.5, at, textwrap.fill(sentence, 58), transform=axis.transAxes, ha="center", va=align,
              fontsize=8.5, color="0.2", zorder=60,
              bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 2})


def byte_text(size):
    unit, suffix = byte_unit(size)
    return f"{size / unit:.3g} {suffix}"


def byte_unit(largest):
    """The unit in which `largest` is a handy number, and its name."""
    for bits, suffix in [(30, "GiB"), (20, "MiB"), (10, "KiB")]:
        if largest >= 1 << bits:
            return 1 << bits, suffix
    return 1, "B"


def legend(made, axes, names, shade=None):
    """All lines once, right of the axes, in the order of their values where they start; and by the
    lines themselves the names that have room there. `shade`: what a grey area means."""
    handles, starts = {}, {}
    for axis in axes.flat:
        for line in own_lines(axis, names):
            handles.setdefault(line.get_label(), line)
            starts.setdefault(line.get_label(), []).append(max(line.get_ydata()))
    order = sorted(handles, key=lambda name: -max(starts[name]))
    if any(axis.collections for axis in axes.flat):
        handles[shade] = Patch(color=SHADE)
        order.append(shade)
    made.legend([handles[name] for name in order], order, loc="upper left", frameon=False,
                bbox_to_anchor=(1 - legend_width(names) / made.get_figwidth(), 0.98), fontsize=9,
                handlelength=3.4)
    if len(names) > MOST_LABELS:
        return
    made.canvas.draw()  # lays the axes out, so that there is something to measure
    for axis in axes.flat:
        if axis.get_visible():
            label_lines(axis, names)


def own_lines(axis, names):
    return [line for line in axis.get_lines() if line.get_label() in names]


def label_lines(axis, names):
    """Writes each line's name where it is farthest from all other lines, if that is far enough."""
    every = {line: samples(axis, line) for line in own_lines(axis, names)}
    frame = axis.get_window_extent()
    taken = []
    for line, points in every.items():
        others = [point for other, group in every.items() if other is not line for point in group]
        width, height = 5.6 * len(line.get_label()) * axis.figure.dpi / 72, 11 * axis.figure.dpi / 72
        aside = width / 2 + 0.4 * height
        places = [(0, 0.9 * height), (0, -0.9 * height), (aside, 0), (-aside, 0)]
        best = max((candidate(x + dx, y + dy, width, height, others, points, taken, frame)
                    for x, y in points[::2] for dx, dy in places), default=(0, None))
        if best[0] < 0.9 * height:  # nearer than that, the other line could be meant
            continue
        taken.append(best[1])
        x0, y0, x1, y1 = best[1]
        axis.text(*axis.transData.inverted().transform(((x0 + x1) / 2, (y0 + y1) / 2)),
                  line.get_label(), color=line.get_color(), fontsize=8, ha="center", va="center",
                  zorder=50)


def samples(axis, line):
    """Points of a line in pixels, close enough to each other that no label fits between them."""
    corners = axis.transData.transform(list(zip(line.get_xdata(), line.get_ydata())))
    points = [tuple(corner) for corner in corners[:1]]
    for (x0, y0), (x1, y1) in zip(corners, corners[1:]):
        steps = max(1, int(max(abs(x1 - x0), abs(y1 - y0)) / 4))
        points += [(x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps)
                   for i in range(1, steps + 1)]
    return points


def candidate(x, y, width, height, others, own, taken, frame):
    """How far a label around (x, y) is from everything else, and its box."""
    box = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
    if box[0] < frame.x0 or box[2] > frame.x1 or box[1] < frame.y0 or box[3] > frame.y1:
        return 0, box
    if any(box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]
           for other in taken):
        return 0, box
    if any(distance(box, point) < 0.1 * height for point in own):
        return 0, box
    return min((distance(box, point) for point in others), default=width), box


def distance(box, point):
    """From a point to a box; 0 inside."""
    dx = max(box[0] - point[0], 0, point[0] - box[2])
    dy = max(box[1] - point[1], 0, point[1] - box[3])
    return (dx * dx + dy * dy) ** 0.5
