# SPDX-License-Identifier: GPL-2.0
"""Figures of a report, from synthetic results."""

import html
import pathlib
import re
import types
import xml.etree.ElementTree

import pytest
from report_bench import save

import synthetic
from tollwaylib.errors import TollwayError
from tollwaylib.report import (charts, figures, overview, plotting, rendering,
                               side_by_side)
from tollwaylib.report.plotting import Look
from tollwaylib.results import schema
from tollwaylib.results.fields import case_of

pytest_plugins = ["report_bench"]


def draw(loaded, analysed, place):
    place.mkdir()
    look = Look()
    return [*charts.rate_allocation([analysed["sbrm-1"], analysed["sbrm-2"]],
                                    "run", place / "rates", look),
            *figures.windows(loaded["dynamics-1"], "run", place / "windows", look),
            *figures.queues(loaded["dynamics-1"], "run", place / "queues", look)]


def test_figures_are_the_same_every_time(loaded, analysed, tmp_path):
    first = draw(loaded, analysed, tmp_path / "a")
    second = draw(loaded, analysed, tmp_path / "b")
    assert [path.name for path in first] == [
        "rates.svg", "rates.png", "windows.svg", "windows.png", "queues.svg",
        "queues.png"]
    for one, two in zip(first, second):
        assert one.read_bytes() == two.read_bytes()
        if one.suffix == ".svg":
            xml.etree.ElementTree.parse(one)
            assert "<dc:date>" not in one.read_text()
        else:
            assert one.read_bytes().startswith(b"\x89PNG")


def test_windows_needs_a_flow(loaded, tmp_path):
    with pytest.raises(TollwayError, match="99"):
        figures.windows(loaded["sbrm-1"], "run", tmp_path / "w", Look(), (99,))


def test_figures_report_an_unwritable_place(loaded, tmp_path):
    with pytest.raises(TollwayError, match="cannot write"):
        figures.queues(loaded["sbrm-1"], "run", tmp_path / "none" / "q", Look())


def test_price_tracking_shows_price_and_estimate(loaded, tmp_path):
    raw = loaded["dynamics-1"]
    with pytest.raises(TollwayError, match="all of its queues are sbrm"):
        figures.price_tracking(raw, "run", tmp_path / "price", Look(), "III")
    (case,) = raw["cases"]
    told = dict(raw, parameters=dict(raw["parameters"], phi=1.0), cases=[
        dict(case, queues={
            name: dict(queue, price_q32=[number << 22 for number in
                                         range(len(queue["t_s"]))])
            for name, queue in case["queues"].items()})])
    paths = figures.price_tracking(told, "run", tmp_path / "price", Look(), "III")
    assert all(path.is_file() for path in paths)


def test_acknowledgements_wrap(loaded, tmp_path):
    paths = figures.acknowledgements(loaded["dynamics-1"], "run",
                                     tmp_path / "acks", Look(), ("I", "III"))
    assert all(path.is_file() for path in paths)
    with pytest.raises(TollwayError, match="none of the paths"):
        figures.acknowledgements(loaded["dynamics-1"], "run",
                                 tmp_path / "acks", Look(), ("X",))


def test_histograms(loaded, tmp_path):
    for draw in (charts.window_histograms, charts.queue_histograms):
        for path in draw(loaded["sbrm-1"], "run", tmp_path / draw.__name__,
                         Look()):
            assert path.is_file()
    late = dict(loaded["sbrm-1"],
                parameters=dict(loaded["sbrm-1"]["parameters"], warmup_s=1e6))
    with pytest.raises(TollwayError, match="nothing was sampled"):
        charts.queue_histograms(late, "run", tmp_path / "late", Look())


def test_one_colour_means_one_thing():
    look = Look()
    count = len(plotting.PALETTE)
    things = [("path", str(number)) for number in range(2 * count)]
    lines = [tuple(look.line(*thing).items()) for thing in things]
    assert len(set(lines)) == len(things)
    assert [tuple(look.line(*thing).items()) for thing in things] == lines
    # The name alone does not say which thing it is.
    assert look.line("link", "0") != look.line("path", "0")
    assert len({look.bar(*thing)["color"] for thing in things[:count]}) == count


def luminance(colour):
    """Of WCAG 2, of "#rrggbb"."""
    parts = [int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)]
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
             for part in parts]
    return sum(weight * part for weight, part in
               zip((0.2126, 0.7152, 0.0722), parts))


def test_css_has_the_colours_of_figures():
    """Light ones as in the files of figures; dark ones are as many, all
    different, and can be seen on the dark page."""
    css = (pathlib.Path(rendering.__file__).parent / "page.css").read_text()
    light, dark, paper = (dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})",
                                          part)) for part in
                          css.split(":root {")[1:])
    for colour, name in plotting.VARIABLES.items():
        assert light[name] == colour, name
    series = [name for name in light if name.startswith("series-")]
    assert len(series) == len(plotting.PALETTE)
    for found in (dark, paper):
        assert len({found[name] for name in series}) == len(series)
    for found in (light, dark):
        for name in series:
            low, high = sorted(map(luminance, (found[name], found["paper"])))
            assert (high + 0.05) / (low + 0.05) > (2 if found is light else 3)


def test_a_figure_says_the_values_under_the_pointer(loaded, tmp_path):
    paths = figures.windows(loaded["dynamics-1"], "run", tmp_path / "w", Look(),
                            (1,))
    titles = [html.unescape(found) for found in re.findall(
        "<title>(.*?)</title>", paths[0].read_text(), re.DOTALL)]
    assert len(titles) == plotting._STRIPS
    first = titles[0].splitlines()
    assert first[0] == "time 0.25 s" and first[1] == "window [packets]"
    assert re.fullmatch(r"flow 1 \(path I, wtp 100\): [0-9.]+", first[2])


def test_a_figure_in_the_page_has_its_colours_and_names(loaded, tmp_path):
    look = Look()
    paths = figures.windows(loaded["dynamics-1"], "run", tmp_path / "w", look, (1,))
    text = plotting.inline(paths[0])
    xml.etree.ElementTree.fromstring(
        text.replace("<svg ", '<svg xmlns:xlink="x" ', 1))
    assert not re.search('#[0-9a-f]{6}', text)
    assert "var(--series-0)" in text and "var(--ink)" in text
    names = set(re.findall(' id="([^"]*)"', text))
    assert names and all(name.startswith("w-") for name in names)
    assert set(re.findall(r"url\(#([^)]*)\)", text)) <= names
    assert set(re.findall('href="#([^"]*)"', text)) <= names


def test_throughput_and_delay_over_time(loaded, analysed, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(overview, "save",
                        lambda figure, out: drawn.append(figure) or [out])
    raw = loaded["sbrm-1"]
    overview.over_time(raw, "run", tmp_path / "t", Look(),
                       case_of(analysed["sbrm-1"]))
    above, below = drawn[0].axes
    (path,) = [line for line in above.get_lines()
               if line.get_label() == "path I"]
    # Two thirds of 96 Mbit/s, less headers: 934 of 1000 bytes.
    assert path.get_ydata()[10:-10].mean() == pytest.approx(
        64 * 0.934, rel=0.02)
    shares = [part for part in above.collections
              if type(part).__name__ == "LineCollection"]
    assert shares[0].get_segments()[0][0][1] == pytest.approx(64 * 0.934)
    (queue,) = [line for line in below.get_lines()
                if line.get_label() == "queue core1"]
    # 20 to 29 packets of 1000 bytes at 96 Mbit/s.
    assert queue.get_ydata().mean() == pytest.approx(24.5 / 12, rel=0.02)


def test_throughput_of_udp_is_what_is_received(loaded, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(overview, "save",
                        lambda figure, out: drawn.append(figure) or [out])
    flow = {"name": "call", "path": "I", "cc": None, "start_s": 0}
    times = [second / 10 for second in range(1, 101)]
    rest = loaded["sbrm-1"]
    case = {"name": "x", "duration_s": 10,
            "queues": rest["cases"][0]["queues"], "flows": [
                {**flow, "arrivals": {"t_s": times, "bytes": [
                    12500 * number for number in range(1, 101)]}},
                {**flow, "name": "lost", "arrivals": None}]}
    overview.over_time({**rest, "cases": [case]}, "x", tmp_path / "u", Look())
    (call,) = [line for line in drawn[0].axes[0].get_lines()
               if line.get_label().startswith("source")]
    assert call.get_label() == "source call (UDP)"
    assert call.get_ydata() == pytest.approx(1)


def test_compared_runs_share_one_figure(analysed, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(overview, "save",
                        lambda figure, out: drawn.append(figure) or [out])
    overview.compared([analysed["sbrm-1"], analysed["reno-1"]],
                      tmp_path / "c", Look())
    rates = drawn[0].axes[0]
    assert [text.get_text() for text in rates.get_xticklabels()] == [
        "path I", "path II", "path III"]
    heights = [[bar.get_height() for bar in bars] for bars in rates.containers]
    assert heights[0] == pytest.approx([100] * 3, abs=2)
    assert heights[1] == pytest.approx([400 / 3] * 2 + [100 / 3], abs=0.5)
    assert rates.get_legend_handles_labels()[1] == [
        "weighted proportionally fair share", "sbrm + sbrm", "reno + pfifo"]


def groups_of(place, raws, analysed, *names):
    """Groups as of a page, whose raw results are read from a directory."""
    found = []
    for number, name in enumerate(names):
        save(place / str(number), raws[name])
        found.append(types.SimpleNamespace(
            raw=schema.load_raw(place / str(number)), outcome=analysed[name],
            results=[analysed[name]]))
    return found


def test_runs_stand_side_by_side(raws, analysed, tmp_path, monkeypatch):
    """Runs whose flows have weights come first; the axes are common; and the
    numbers are those of the result."""
    drawn = []
    monkeypatch.setattr(
        side_by_side, "save",
        lambda figure, out, **words: drawn.append((figure, words)) or [out])
    assert side_by_side.side_by_side(
        groups_of(tmp_path, raws, analysed, "reno-1", "sbrm-1"), "run",
        tmp_path / "s", Look())
    (figure, words), = drawn
    priced_rates, reno_rates, priced_delays, _ = figure.axes
    assert priced_rates.get_title("left") == "sbrm + sbrm"
    assert priced_rates.get_ylim() == reno_rates.get_ylim()
    levels = {round(line.get_ydata()[0], 3) for line in priced_rates.get_lines()
              if line.get_label() == "fair shares for weights 1:2:4"}
    assert levels == {round(8e-6 * synthetic.MSS_BYTES
                            * synthetic.fair_pps(path, wtp), 3)
                      for path in "I III".split() for wtp in synthetic.WTPS}
    assert not any("weights" in line.get_label()
                   for line in reno_rates.get_lines())
    # 20 to 29 packets of 1000 bytes at 96 Mbit/s.
    assert "mean 2.0 ms" in priced_delays.texts[0].get_text()
    for one in (raws["sbrm-1"], raws["reno-1"]):
        assert one["provenance"]["command"] in words["description"]


def test_runs_without_one_rate_do_not_stand_side_by_side(raws, analysed,
                                                         tmp_path):
    for number, names in enumerate((
            ["sbrm-1"], ["sbrm-1", "dynamics-1"], ["sbrm-1"] * 6)):
        assert side_by_side.side_by_side(
            groups_of(tmp_path / str(number), raws, analysed, *names), "run",
            tmp_path / "s", Look()) is None
    assert not list(tmp_path.glob("s.*"))
