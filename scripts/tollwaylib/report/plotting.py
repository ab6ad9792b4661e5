# SPDX-License-Identifier: GPL-2.0
"""The style of figures, and their files: each as SVG and PNG.

The same input gives the same SVG, byte for byte, with one version of matplotlib: identifiers
have a constant salt, and no date is written. In an SVG, the values under the pointer are
shown as a tooltip, see reading().
"""

import atexit
import io
import logging
import os
import pathlib
import re
import shutil
import tempfile


def _place_for_matplotlib():
    """Give matplotlib a directory for its caches if it would find none. Without a home it does
    not start, and if it cannot write to the home it prints a warning."""
    def can_be_made(path):
        # As matplotlib does: whether it can only trying shows, as in /proc.
        try:
            os.makedirs(path, exist_ok=True)
        except OSError:
            return False
        return os.access(path, os.W_OK | os.X_OK)

    wanted = [os.path.join(os.environ.get(name) or
                           os.path.join(os.path.expanduser("~"), usual),
                           "matplotlib")
              for name, usual in (("XDG_CONFIG_HOME", ".config"),
                                  ("XDG_CACHE_HOME", ".cache"))]
    if "MPLCONFIGDIR" not in os.environ and not all(
            os.path.isabs(path) and can_be_made(path) for path in wanted):
        folder = tempfile.mkdtemp(prefix="tollway-matplotlib-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["MPLCONFIGDIR"] = folder


_place_for_matplotlib()
# Nor is anyone to wait for the list of fonts with a warning.
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)

import matplotlib  # noqa: E402  (it looks for its directory at once)

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402  (the backend comes first)
import numpy as np  # noqa: E402

from ..errors import TollwayError  # noqa: E402

# Okabe and Ito's palette, distinguishable with any colour vision: without its
# yellow, which is too light on white, and with a dark red.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
           "#0b0b0b", "#882255")
LINES = ("-", "--", "-.", ":")
_MARKERS = ("o", "s", "^", "D")
_HATCHES = ("", "//", "..", "xx")
INK = "#1d2329"
THEORY = "#444c55"
GRID = "#d9dde1"
SHADE = "#f1f3f5"
# What the page shows in colours of its own, light or dark: see page.css.
VARIABLES = {"#ffffff": "paper", INK: "ink", THEORY: "theory", GRID: "line",
             SHADE: "shade",
             **{colour: f"series-{number}" for number, colour in
                enumerate(PALETTE)}}
# So many strips of a figure over time have a reading each.
_STRIPS = 60
STYLE = {
    "svg.hashsalt": "tollway",
    # A machine without DejaVu Sans shows the SVG with one that is as wide.
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana"],
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": GRID,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    # Text stays text: it can be searched, and has the colour of the page.
    "svg.fonttype": "none",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 10,
    "figure.dpi": 100,
    "savefig.dpi": 150,
}


class Look:
    """The colour and line of each thing, which are the same in all figures of a page.

    A thing is a kind ("link", "path", "source", "run" ...) and a name. Colours are assigned in
    the order in which things are first drawn. If there are more things than colours, the line,
    marker or hatch differs as well.
    """

    def __init__(self):
        self._known = {}

    def _place(self, kind, name):
        """(number of the colour, number of the line)."""
        index = self._known.setdefault((kind, name), len(self._known))
        return index % len(PALETTE), index // len(PALETTE) % len(LINES)

    def series(self, kind, name):
        """The number of its colour in the palette."""
        return self._place(kind, name)[0]

    def line(self, kind, name):
        """Keywords of a line."""
        colour, line = self._place(kind, name)
        return {"color": PALETTE[colour], "linestyle": LINES[line]}

    def marker(self, kind, name):
        """Keywords of a line with markers, or of markers alone."""
        colour, line = self._place(kind, name)
        return {"color": PALETTE[colour], "marker": _MARKERS[line]}

    def bar(self, kind, name):
        """Keywords of a bar."""
        colour, line = self._place(kind, name)
        return {"color": PALETTE[colour], "hatch": _HATCHES[line],
                "edgecolor": "#ffffff", "linewidth": 0}



def sawtooth(times, values, modulus):
    """values modulo a number, with a gap where they wrap."""
    times, values = np.asarray(times, dtype=float), values.copy()
    wraps = np.flatnonzero(np.diff(values // modulus) > 0) + 1
    return (np.insert(times, wraps, times[wraps]),
            np.insert(values % modulus, wraps, np.nan))


def histograms(series, title, unit, out, look):
    """Histograms of whole numbers, one below another with a common axis.

    series: {(kind, name) as of Look: numbers}.

    Raises TollwayError if a series has no numbers.
    """
    if not all(series.values()):
        raise TollwayError("nothing was sampled after the warm-up")
    top = max(max(values) for values in series.values())
    # Wide bars where there would be hundreds of narrow ones.
    width = max(1, int(np.ceil((top + 1) / 100)))
    bins = np.arange(0, top + 2 * width, width) - 0.5
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(
            len(series), 1, figsize=(9, 1.2 + 1.6 * len(series)), sharex=True,
            squeeze=False)
        for (thing, values), axes in zip(series.items(), panels[:, 0]):
            name = " ".join(thing)
            parts, _, _ = axes.hist(values, bins=bins, weights=np.full(
                len(values), 100 / len(values)), **look.bar(*thing))
            for left, part in zip(bins, parts):
                reading(axes, left, left + width,
                        f"{name}, {left + 0.5:g} {unit}: {part:.2f} % of "
                        "the samples")
            mean, spread = np.mean(values), np.std(values)
            axes.set_ylabel("samples [%]")
            # The line of text is above the highest bar: 0.25 of it are 17 points.
            axes.set_ylim(0, 1.25 * max(parts))
            axes.set_xlim(-0.5, bins[-1])
            axes.text(0.995, 0.98, f"{name}: mean {mean:.1f}, standard "
                      f"deviation {spread:.1f}", ha="right", va="top",
                      transform=axes.transAxes, color=THEORY)
        panels[0, 0].set_title(title)
        panels[-1, 0].set_xlabel(unit)
        return save(figure, out)


def shade_intervals(axes, raw):
    """Shade every second interval; without a schedule, the warm-up."""
    parameters = raw["parameters"]
    schedule = raw.get("schedule")
    if not schedule:
        axes.axvspan(0, parameters["warmup_s"], color=SHADE, linewidth=0,
                     zorder=0, label="warm-up")
        return
    starts = [step["t_s"] for step in schedule]
    for index, (step, start, stop) in enumerate(zip(
            schedule, starts, starts[1:] + [parameters["duration_s"]])):
        if index % 2:
            axes.axvspan(start, stop, color=SHADE, linewidth=0, zorder=0)
        axes.text((start + stop) / 2, 0.985, f"load ×{step['factor']:g}",
                  ha="center", va="top", color=THEORY, fontsize=9,
                  transform=axes.get_xaxis_transform())


def headroom(axes, top):
    """Start the y axis at 0 and leave room for labels above the data."""
    axes.set_ylim(0, 1.12 * top if top > 0 else 1)


def legend_above(axes):
    """Put the legend between the title and the axes, off the data."""
    # In points: what the axes are wide, and what a label takes with its line.
    width = axes.figure.get_figwidth() * 72 - 60
    widths = [6 * len(label) + 42
              for label in axes.get_legend_handles_labels()[1]]
    columns = next((count for count in range(len(widths), 1, -1)
                    if sum(map(max, np.array_split(widths, count))) < width), 1)
    rows = -(-len(widths) // columns)
    axes.legend(loc="lower left", ncol=columns, bbox_to_anchor=(0, 1),
                borderaxespad=0.2, borderpad=0.2, columnspacing=1.6,
                handlelength=1.8)
    if axes.get_title("left"):
        axes.set_title(axes.get_title("left"), pad=12 + 16 * rows)


def reading(axes, left, right, text):
    """Show a text where the pointer is between two places of the x axis."""
    axes.axvspan(left, right, alpha=0, linewidth=0, gid=f"reading:{text}")


def reading_of_row(axes, low, high, text):
    """The same between two places of the y axis."""
    axes.axhspan(low, high, alpha=0, linewidth=0, gid=f"reading:{text}")


def _readings_of_lines(axes):
    """Add readings of all lines that the legend names, unless the figure has its own: one for
    each point if there are few, otherwise means over strips of the x axis."""
    if any((patch.get_gid() or "").startswith("reading:")
           for patch in axes.patches):
        return
    # Two points without a marker are a level, which the legend names.
    lines = [(line.get_label(), *(np.asarray(values, dtype=float)
                                  for values in line.get_data()))
             for line in axes.get_lines()
             if not line.get_label().startswith("_")
             and (len(line.get_xdata()) > 2
                  or line.get_marker() not in ("None", None, "", " "))]
    if not lines:
        return
    (left, right), limits = axes.get_xlim(), axes.get_ylim()
    places = np.unique(np.concatenate([x for _, x, _ in lines]))
    if len(places) <= _STRIPS:
        between = np.sqrt(places[1:] * places[:-1]) \
            if axes.get_xscale() == "log" else (places[1:] + places[:-1]) / 2
        edges = [left, *between, right]
    else:
        edges = np.linspace(left, right, _STRIPS + 1)
        places = None
    name, unit = _name_and_unit(axes.get_xlabel() or _label_below(axes))
    for number, (start, stop) in enumerate(zip(edges, edges[1:])):
        at = (start + stop) / 2 if places is None else places[number]
        said = [f"{name} {at:.4g}{unit}"]
        for label, x, y in lines:
            chosen = y[(x >= start) & (x < stop) & np.isfinite(y)]
            if len(chosen):
                said.append(f"{label}: {chosen.mean():.4g}")
        if len(said) > 1:
            said.insert(1, axes.get_ylabel())
            reading(axes, start, stop, "\n".join(said))
    axes.set_xlim(left, right)
    axes.set_ylim(limits)


def _label_below(axes):
    """The x label of the lowest panel of a column."""
    return next((other.get_xlabel() for other in reversed(axes.figure.axes)
                 if other.get_xlabel()), "")


def _name_and_unit(label):
    """("time", " s") of "time [s]"."""
    name, _, unit = label.partition(" [")
    return name, f" {unit.rstrip(']')}" if unit else ""


_READING = re.compile(r'<g id="reading:([^"]*)">(\s*<path [^>]*?)'
                      r' style="[^"]*"/>')


def save(figure, out, description=None, readings=True, bottom=0.0):
    """Write figure as out.svg and out.png and close it.

    description: a text in the SVG that is not shown. readings: show values under the pointer.
    bottom: fraction of the figure that stays free below the axes.

    Raises TollwayError if a file cannot be written.
    """
    out = pathlib.Path(out)
    try:
        figure.tight_layout(rect=(0, bottom, 1, 1))
        for axes in figure.axes if readings else ():
            _readings_of_lines(axes)
        paths = [out.with_name(out.name + suffix)
                 for suffix in (".svg", ".png")]
        text = io.StringIO()
        figure.savefig(text, format="svg",
                       metadata={"Date": None, "Creator": "tollway",
                                 "Description": description})
        paths[0].write_text(_READING.sub(
            r'<g class="reading"><title>\1</title>\2 fill="black"'
            r' fill-opacity="0"/>', text.getvalue()), encoding="utf-8")
        figure.savefig(paths[1], metadata={"Software": "tollway"})
    except OSError as error:
        raise TollwayError(f"cannot write {out}: {error.strerror}") from error
    finally:
        plt.close(figure)
    return paths


# What only a file of its own needs, and what would hold for the whole page.
_OF_A_FILE = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|"
                        r"<style.*?</style>", re.DOTALL)
_NAMES = re.compile(r'(\bid="|url\(#|xlink:href="#)')
_COLOUR = re.compile("#[0-9a-f]{6}")


def inline(path):
    """An SVG of save() as an element of the page, in the page's colours.

    Names of its parts begin with the name of the file, since a page has many.
    """
    text = _OF_A_FILE.sub("", path.read_text(encoding="utf-8")).strip()
    text = _NAMES.sub(lambda found: f"{found[0]}{path.stem}-", text)
    text = _COLOUR.sub(
        lambda found: f"var(--{VARIABLES[found[0]]})"
        if found[0] in VARIABLES else found[0], text)
    return re.sub(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>',
                  r'<svg \1 role="img" class="plot">', text, count=1,
                  flags=re.DOTALL)
