# SPDX-License-Identifier: GPL-2.0
"""tollway table: all numbers of a directory, from synthetic results."""

import csv
import io
import os
import pathlib
import subprocess
import sys
import threading
import types

import pytest

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "scripts"), str(HERE / "golden")]

import synthetic  # noqa: E402
from tollwaylib import cli, files  # noqa: E402
from tollwaylib.errors import TollwayError  # noqa: E402
from tollwaylib.results import entries, schema, tidy  # noqa: E402
from tollwaylib.results.fields import case_of  # noqa: E402

CASES = [{"name": "burst, 3", "x": 3.0, "series": None, "runs": 1,
          "metrics": {"peak": 17.0, "late_s": None}},
         {"name": "burst, 4", "x": 4.0, "series": 'a "b"', "runs": 1,
          "metrics": {"peak": 18.5, "late_s": 0.25}}]


def of_cases(result):
    """A result of cases, of the same run otherwise."""
    return {**result, "cases": CASES,
            "columns": [{"key": "peak", "title": "peak", "unit": None, "digits": 1}]}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A directory with two results of flows and one of cases."""
    top = tmp_path_factory.mktemp("results")
    made = [synthetic.analyse(synthetic.steady(seed=seed)) for seed in (1, 2)]
    for place, result in (("a/seed-1", made[0]), ("a/seed-2", made[1]),
                          ("b", of_cases(made[0]))):
        (top / place).mkdir(parents=True)
        files.write_json_atomic(top / place / "result.json", result)
    return top, made


def read(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_every_measured_number_has_one_row(site, capsys):
    top, made = site
    assert cli.main(["table", str(top)]) == 0
    rows = read(capsys.readouterr().out)
    assert list(rows[0]) == list(tidy.COLUMNS)
    keys = [tuple(row[name] for name in ("run", "kind", "name", "path", "wtp",
                                         "metric")) for row in rows]
    assert len(set(keys)) == len(keys)
    for seed, result in enumerate(made, start=1):
        mine = [row for row in rows if row["run"] == f"a/seed-{seed}"]
        assert {row["seed"] for row in mine} == {str(seed)}
        rates = {int(row["name"]): float(row["value"]) for row in mine
                 if (row["kind"], row["metric"]) == ("flow", "rate_pps")}
        assert rates == {flow["id"]: flow["rate_pps"]
                         for flow in case_of(result)["flows"]}
        assert {row["name"]: float(row["value"]) for row in mine
                if row["metric"] == "queue_mean_ms"} == {
                    name: link["queue_mean_ms"]
                    for name, link in case_of(result)["links"].items()}
        assert {(row["path"], float(row["wtp"])): float(row["value"])
                for row in mine if row["metric"] == "spread"} == {
                    (entry["path"], entry["wtp"]): entry["spread"]
                    for entry in case_of(result)["classes"]}
    assert [(row["name"], row["series"], row["x"], row["metric"], row["value"])
            for row in rows if row["run"] == "b"] == [
                ("burst, 3", "", "3.0", "peak", "17.0"),
                ("burst, 4", 'a "b"', "4.0", "peak", "18.5"),
                ("burst, 4", 'a "b"', "4.0", "late_s", "0.25")]


def test_intervals_have_rows():
    result = synthetic.analyse(synthetic.dynamics(lag_s=1.52))
    steps = case_of(result)["intervals"]
    rows = tidy.rows(result, "run")
    mine = [row for row in rows if row["kind"].startswith("interval")]
    assert {row["kind"] for row in mine} == {
        "interval", "interval_link", "interval_class"}
    found = {(row["kind"], row["series"], row["name"], row.get("wtp"),
              row["metric"]): row for row in mine}
    assert len(found) == len(mine)
    for number, step in enumerate(steps, 1):
        series = f"interval {number}"
        row = found["interval", series, str(number), None, "max_convergence_s"]
        assert (row["value"], row["x"]) == (step["max_convergence_s"],
                                            step["start_s"])
        for name, link in step["links"].items():
            assert found["interval_link", series, name, None,
                         "utilization_after_2s"]["value"] == \
                link["utilization_after_2s"]
        for group in step["classes"]:
            assert found["interval_class", series, group["path"], group["wtp"],
                         "jain"]["value"] == group["jain"]
    # Rows of the whole run are as they were.
    links = [row for row in rows if (row["kind"], row["metric"]) ==
             ("link", "utilization")]
    assert len(links) == len(case_of(result)["links"])


def test_pages_recovery_and_steady_states_have_rows():
    result = synthetic.analyse(synthetic.steady(seed=1))
    case = case_of(result)
    case.update(
        steady_state=[{"link": "core1", "flows": 24, "queue_pkts": 12.5}],
        pages=[{"path": "I", "pages": 7, "p99_s": None, "median_s": 0.5}],
        recovery={"timeouts": 3, "fast_retransmits": None, "retransmits": 9})
    found = {(row["kind"], row["name"], row.get("path"), row["metric"]):
             row["value"] for row in tidy.rows(result, "run") if row["kind"] in
             ("steady_state", "pages", "recovery")}
    assert found == {
        ("steady_state", "core1", None, "flows"): 24,
        ("steady_state", "core1", None, "queue_pkts"): 12.5,
        ("pages", "I", "I", "pages"): 7, ("pages", "I", "I", "median_s"): 0.5,
        ("recovery", case["name"], None, "timeouts"): 3,
        ("recovery", case["name"], None, "retransmits"): 9}


def test_flows_and_links_of_an_experiment_with_metrics(tmp_path):
    """Its result has only metrics: raw.json beside it has the rest."""
    raw = synthetic.steady(seed=1)
    result = synthetic.analyse(raw)
    wanted = case_of(result)
    files.write_json_atomic(tmp_path / "result.json", of_cases(
        {**result, "cases": CASES}))
    assert {row["kind"] for row in tidy.table(tmp_path)} == {"case"}
    files.write_json_atomic(tmp_path / "raw.json", raw)
    rows = tidy.table(tmp_path)
    kept = {(row["kind"], row["name"], row["metric"]): row for row in rows}
    assert len(kept) == len(rows)
    for flow in wanted["flows"]:
        row = kept["flow", str(flow["id"]), "rate_pps"]
        # Of its whole life, with the warm-up.
        assert row["value"] == pytest.approx(flow["rate_pps"], rel=0.1)
        assert (row["path"], row["cc"], row["case"]) == (
            flow["path"], flow["cc"], "run")
    for name, link in wanted["links"].items():
        row = kept["link", name, "utilization"]
        assert row["value"] == pytest.approx(link["utilization"], rel=0.1)
        assert kept["link", name, "drops"]["value"] >= link["drops"]


def test_what_udp_brought_and_what_was_not_sampled():
    raw = synthetic.steady(seed=1)
    flow, other = raw["flows"][:2]
    flow.update(cc=None, samples={}, arrivals={
        "t_s": [flow["start_s"] + 1.0, flow["start_s"] + 2.0],
        "bytes": [1000, 3000]})
    other["samples"] = {}
    found = {one["id"]: one for one in entries.entries_of(schema.upgraded(raw))[0]["flows"]}
    assert found[flow["id"]]["goodput_bps"] == pytest.approx(12000)
    assert found[flow["id"]]["rate_pps"] is None
    assert found[other["id"]]["rate_pps"] is None


def test_damaged_raw_measurements_are_reported(tmp_path):
    result = synthetic.analyse(synthetic.steady(seed=1))
    files.write_json_atomic(tmp_path / "result.json", of_cases(result))
    (tmp_path / "raw.json").write_text("{")
    with pytest.raises(TollwayError, match="raw.json is not valid JSON"):
        tidy.table(tmp_path)


def test_a_file_is_written_whole(site, tmp_path, capsys):
    top, _ = site
    assert cli.main(["table", str(top), "--out", str(tmp_path / "t.csv")]) == 0
    assert capsys.readouterr().out == ""
    assert cli.main(["table", str(top)]) == 0
    assert capsys.readouterr().out == (tmp_path / "t.csv").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_a_fifo_is_written_and_stays(site, tmp_path):
    top, _ = site
    fifo, got = tmp_path / "fifo", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: got.append(fifo.read_text()),
                              daemon=True)
    reader.start()
    tidy.write(top, "csv", fifo)
    # Where the FIFO was replaced nobody ever writes to it.
    assert fifo.is_fifo()
    reader.join(timeout=10)
    assert len(read(got[0])) == len(tidy.table(top))
    assert [path.name for path in tmp_path.iterdir()] == ["fifo"]


def test_a_pipe_by_name_is_written(site):
    """As /dev/stdout is one. Not by that name: a mistake would replace it for
    the whole machine, where tests run as root."""
    ends = os.pipe()
    try:
        tidy.write(site[0], "csv", f"/proc/self/fd/{ends[1]}")
        # It fits into the buffer of a pipe, 64 KiB.
        text = os.read(ends[0], 1 << 16).decode()
    finally:
        for end in ends:
            os.close(end)
    assert len(read(text)) == len(tidy.table(site[0]))


@pytest.mark.parametrize("there", [True, False])
def test_the_target_of_a_link_is_written(there, site, tmp_path):
    link, target = tmp_path / "link.csv", tmp_path / "far" / "t.csv"
    target.parent.mkdir()
    if there:
        target.write_text("old")
    link.symlink_to("far/t.csv")
    tidy.write(site[0], "csv", link)
    assert link.is_symlink()
    assert len(read(target.read_text())) == len(tidy.table(site[0]))
    assert target.stat().st_mode & 0o777 == 0o644


def test_files_with_similar_names_stay(site, tmp_path, monkeypatch):
    class Frame:
        def __init__(self, rows, columns):
            pass

        def to_parquet(self, path, index):
            pathlib.Path(path).write_bytes(b"PAR1")

    # pandas need not be installed.
    monkeypatch.setitem(sys.modules, "pandas",
                        types.SimpleNamespace(DataFrame=Frame))
    mine, out = tmp_path / "t.new", tmp_path / "t"
    mine.write_text("mine")
    tidy.write(site[0], "parquet", out)
    assert (mine.read_text(), out.read_bytes()) == ("mine", b"PAR1")
    assert {path.name for path in tmp_path.iterdir()} == {"t", "t.new"}


def test_what_cannot_be_written_is_reported(site, tmp_path):
    for out in (tmp_path / "none" / "t.csv", tmp_path, tmp_path / ("long" * 100)):
        with pytest.raises(TollwayError, match=f"cannot write {out}: "):
            tidy.write(site[0], "csv", out)


def test_parquet_where_pandas_can_write_it(site, tmp_path):
    top, _ = site
    out = tmp_path / "t.parquet"
    try:
        import pandas
        pandas.DataFrame({"a": [1]}).to_parquet(tmp_path / "try")
    except ImportError:
        with pytest.raises(TollwayError, match="pyarrow.*--format csv"):
            tidy.write(top, "parquet", out)
        assert not list(tmp_path.iterdir())
        return
    tidy.write(top, "parquet", out)
    assert len(pandas.read_parquet(out)) == len(tidy.table(top))


def test_parquet_needs_a_file(site):
    with pytest.raises(TollwayError, match="--out"):
        tidy.write(site[0], "parquet")


@pytest.mark.parametrize("make, sentence", [
    (lambda top: None, "is not a directory"),
    (lambda top: top.mkdir(), "holds no results"),
    (lambda top: (top.mkdir(), (top / "result.json").write_text("{")),
     "not valid JSON"),
    (lambda top: (top.mkdir(), (top / "result.json").write_text("{}")),
     "result.json: the result has schema None, not one of 1 to 5"),
    (lambda top: (top.mkdir(), (top / "raw.json").write_text("{}")),
     "top is incomplete: it has no result.json"),
    (lambda top: ((top / "a").mkdir(parents=True),
                  (top / "a/raw.json").write_text("{}")),
     "a is incomplete: it has no result.json"),
])
def test_what_is_no_result_is_reported(make, sentence, tmp_path):
    make(tmp_path / "top")
    with pytest.raises(TollwayError, match=sentence):
        tidy.table(tmp_path / "top")


def test_what_a_killed_run_left_is_left_out(tmp_path, capsys):
    result = synthetic.analyse(synthetic.steady(seed=1))
    for name in ("seed-1", "seed-2"):
        (tmp_path / name).mkdir()
    files.write_json_atomic(tmp_path / "seed-1/result.json", result)
    (tmp_path / "seed-2/raw.json").write_text("{")
    assert {row["run"] for row in tidy.table(tmp_path)} == {"seed-1"}
    assert capsys.readouterr().err == (
        f"note: {tmp_path / 'seed-2'} is left out: it has a raw.json, but no "
        "result.json\n")
    # One that was asked for by its name is not left out.
    (tmp_path / "raw.json").write_text("{")
    with pytest.raises(TollwayError, match="incomplete: it has no result.json"):
        tidy.table(tmp_path)


def test_a_reader_that_leaves_is_no_traceback(site):
    """As `tollway table DIR | head -1` does."""
    command = [sys.executable, str(HERE.parent / "scripts/tollway"), "table",
               str(site[0])]
    with subprocess.Popen(command, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        process.stdout.close()
        assert "Traceback" not in process.stderr.read()
