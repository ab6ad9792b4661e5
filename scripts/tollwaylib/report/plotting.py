# SPDX-License-Identifier: GPL-2.0
"""How figures look, and how they are saved: each as SVG and PNG.

The same input gives the same SVG, byte for byte, on one version of
matplotlib: identifiers are salted with a constant and no date is written.
"""

import atexit
import logging
import os
import pathlib
import shutil
import tempfile


def _place_for_matplotlib():
    """Give matplotlib a directory of its own for its caches where it would not
    find one: without a home it does not start, and where it cannot write to
    the home it says so on standard error."""
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

# Okabe and Ito's palette, distinguishable with any colour vision.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
THEORY = "#444444"
_GRID = "#d9d9d9"
SHADE = "#f1f3f5"
STYLE = {
    "svg.hashsalt": "tollway",
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": _GRID,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 10,
    "figure.dpi": 100,
    "savefig.dpi": 150,
}


def sawtooth(times, values, modulus):
    """values modulo a number, with a gap where they wrap."""
    times, values = np.asarray(times, dtype=float), values.copy()
    wraps = np.flatnonzero(np.diff(values // modulus) > 0) + 1
    return (np.insert(times, wraps, times[wraps]),
            np.insert(values % modulus, wraps, np.nan))


def histograms(series, title, unit, out):
    """Histograms of whole numbers, one below another with a common axis."""
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
        for index, ((name, values), axes) in enumerate(zip(
                series.items(), panels[:, 0])):
            axes.hist(values, bins=bins, weights=np.full(
                len(values), 100 / len(values)), color=PALETTE[
                    index % len(PALETTE)])
            mean, spread = np.mean(values), np.std(values)
            axes.set_ylabel("samples [%]")
            axes.text(0.995, 0.95, f"{name}: mean {mean:.1f}, standard "
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
    axes.legend(loc="lower left", ncol=8, bbox_to_anchor=(0, 1),
                borderaxespad=0.2, borderpad=0.2, columnspacing=1.6,
                handlelength=1.8)
    if axes.get_title("left"):
        axes.set_title(axes.get_title("left"), pad=28)


def save(figure, out):
    """Write figure as out.svg and out.png and close it."""
    out = pathlib.Path(out)
    try:
        figure.tight_layout()
        paths = [out.with_name(out.name + suffix)
                 for suffix in (".svg", ".png")]
        figure.savefig(paths[0], metadata={"Date": None, "Creator": "tollway"})
        figure.savefig(paths[1], metadata={"Software": "tollway"})
    except OSError as error:
        raise TollwayError(f"cannot write {out}: {error.strerror}") from error
    finally:
        plt.close(figure)
    return paths
