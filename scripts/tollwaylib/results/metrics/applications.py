# SPDX-License-Identifier: GPL-2.0
"""Metrics of applications: web pages and video frames."""

import statistics

import numpy as np

from ...errors import TollwayError
from ...theory import measures
from ..fields import mean_or_none
from ..measurements import EPSILON
from .shares import rates


def _frames(data, flow):
    """[(bytes, s until all of the frame was acknowledged, or None)] of a coder."""
    frames = flow["final"].get("frames")
    samples = flow["samples"]
    if frames:
        sizes, begun = frames["bytes"], frames["t_s"]
    else:
        # A constant coder: what it hands over, and when, is in its words.
        words = dict(word.split("=", 1) for word in flow["words"].split())
        size, rate = int(words["size"]), int(words["rate"])
        count = int((flow["stop_s"] - flow["start_s"]) * rate / 8 / size)
        sizes = [size] * count
        begun = [flow["start_s"] + index * size * 8 / rate
                 for index in range(count)]
    times = np.asarray(samples["t_s"], dtype=float)
    if frames and "packets" in frames:
        # A stream: a packet that is lost does not hold up those behind it.
        acked = np.asarray(samples["packets"], dtype=float)
        ends = np.asarray(frames["packets"], dtype=float)
    else:
        acked = np.asarray(samples["bytes_acked"], dtype=float)
        ends = np.cumsum(np.asarray(sizes, dtype=float))
    place = np.searchsorted(acked, ends - EPSILON)
    return [(size, float(times[where]) - t if where < len(times) else None)
            for size, t, where in zip(sizes, begun, place)]


def frame_delay_ms(data, words):
    """A quantile of the delays of frames. A frame that was not complete at the end counts with
    the time until then. Delays are too long by at most the time between two samples."""
    times = []
    for flow in data.of_role(words["role"]):
        frames = flow["final"].get("frames")
        begun = frames["t_s"] if frames else None
        for index, (_, delay) in enumerate(_frames(data, flow)):
            if delay is None:
                since = begun[index] if begun else flow["start_s"]
                times.append((flow["stop_s"] - since, False))
            else:
                times.append((delay, True))
    value = measures.survival_quantile(times, words["part"]) if times else None
    return None if value is None else 1000 * value


def frame_rate_mbit(data, words):
    """Mean rate of acknowledged data of a flow of a role in the window of a metric, Mbit/s;
    None if there is no such flow."""
    start, stop = data.window(words)
    return mean_or_none(8e-6 * data.mss * rate for rate in
                        rates(data, {**words, "from_s": start, "to_s": stop}))


def pages_of(run):
    """Transfer times and throughput of the pages that began after the warm-up (CP05 Table
    5.6.3), of all users and of each path.

    A page that was not complete at the end takes longer than the time until then; the
    percentiles count it by the estimator of Kaplan and Meier. The mean is over complete
    pages.

    Raises TollwayError if a flow has no pages, or if no page of a path was complete.
    """
    by_path = {}
    for flow in run.flows:
        if not flow.pages:
            raise TollwayError(f"{flow.where} has no pages, but other flows "
                               "have")
        pages = by_path.setdefault(flow.path, [])
        chosen = (flow.pages.start >= run.warmup_s) \
            & (flow.pages.start < run.duration_s)
        for index in np.flatnonzero(chosen):
            end = float(flow.pages.end[index])
            pages.append((min(end, run.duration_s)
                          - float(flow.pages.start[index]),
                          bool(flow.pages.finished[index])
                          and end <= run.duration_s,
                          float(flow.pages.bytes[index])))
    groups = {"all": [page for pages in by_path.values() for page in pages],
              **by_path}
    return [_page_times(path, pages) for path, pages in groups.items()]


def _page_times(path, pages):
    finished = [page for page in pages if page[1]]
    if not finished:
        raise TollwayError("no page was finished while rates were measured")
    mean_s = statistics.fmean(page[0] for page in finished)
    mean_bytes = statistics.fmean(page[2] for page in finished)
    return {"path": path, "pages": len(finished),
            "unfinished": len(pages) - len(finished),
            "median_s": measures.survival_quantile(pages, 0.5),
            "p99_s": measures.survival_quantile(pages, 0.99),
            "mean_s": mean_s, "mean_bytes": mean_bytes,
            # The paper: an average page over the mean time of a page.
            "throughput_kBps": mean_bytes / mean_s / 1000}
