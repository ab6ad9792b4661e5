# SPDX-License-Identifier: GPL-2.0
"""Published values in a JSON file beside a user's own experiment."""

import json
import pathlib
import subprocess

import pytest

from tollwaylib import papers
from tollwaylib.errors import TollwayError
from tollwaylib.experiments import jobs, plan

TOP = pathlib.Path(__file__).resolve().parents[1]
MINE = """title = "One link"
links = {"core": {"from": "a", "to": "b", "rate": "20Mbit", "delay": "10ms"}}
paths = {"p": {"links": ["core"]}}
flows = [{"path": "p", "count": 2}]
duration = "6s"
warmup = "3s"
cc = "sbrm"
queue = "delay"
metrics = [("utilization", "core"), ("goodput_mbit", "p")]
published = "papers/all.json"
"""
ALL = """{
 "schema": 2,
 "notes": ["Where they are from."],
 "experiments": {
  "other": 7,
  "mine": [{
   "setup": {"capacity_bps": {"core": 20000000},
             "parameters": {"packet_bytes": 1514}},
   "rows": [{
    "name": "SBRM", "paper": "Table 1", "baseline": false,
    "pairs": [["sbrm", "delay"]],
    "setup": {"duration_s": 6.0, "initcwnd": 10},
    "numbers": [
     {"name": "utilisation", "metric": "utilization core", "value": 0.97,
      "tolerance": 0.05, "better": "higher"},
     {"name": "goodput", "case": "run", "metric": "goodput_mbit p",
      "value": 3, "unit": "Mbit/s", "tolerance": 0, "better": "higher"}
    ]
   }, {
    "name": "other initcwnd", "paper": "Table 2",
    "pairs": [["sbrm", "delay"]], "setup": {"initcwnd": 3},
    "numbers": [
     {"name": "utilisation", "metric": "utilization core", "value": 0.5,
      "tolerance": 0.1, "better": "lower"}]
   }]
  }]
 }
}
"""


def written(folder, text=ALL):
    (folder / "papers").mkdir()
    (folder / "papers/all.json").write_text(text)
    (folder / "mine.py").write_text(MINE)
    return str(folder / "mine.py")


def test_a_json_file_has_what_a_paper_published(tmp_path):
    experiment = papers.get(written(tmp_path))
    values = plan.parse_settings(experiment, [], experiment.cc, experiment.aqm)
    job = jobs.job(experiment, experiment.cc, experiment.aqm, values, 6.0, 1)
    (part,) = job["published"]
    (given,) = json.loads(ALL)["experiments"]["mine"]
    assert part["setup"] == given["setup"]
    first, _ = part["rows"]
    assert first["pairs"] == [["sbrm", "delay"]]
    # What may be left out is there: the case, and the unit of the metric.
    assert first["numbers"] == [
        {**given["rows"][0]["numbers"][0], "case": "run", "unit": "%"},
        given["rows"][0]["numbers"][1]]


def test_a_run_is_compared_with_a_json_file(tmp_path):
    done = subprocess.run(
        [str(TOP / "scripts/tollway"), "run", written(tmp_path), "--on", "model",
         "--json", "-", "--out", str(tmp_path / "out")], text=True,
        stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert [(entry["name"], entry["verdict"], entry["differences"])
            for entry in result["published"]] == [
                ("SBRM: utilisation", "agrees", []),
                ("SBRM: goodput", "better", []),
                ("other initcwnd: utilisation", "other setup",
                 ["initcwnd 10 instead of 3"])]
    assert result["references"]


# A change of ALL, the line that is wrong then, and what is said of it.
WRONG = (
    ('"schema": 2,', '"schema": 2', 3, "it is not valid JSON: Expecting ','"),
    ('"schema": 2', '"schema": 3', 2, "schema is 3: give 2"),
    ('"notes"', '"reasons"', 3, "the file has no 'reasons': it has experiments, "
     "schema, notes"),
    ('"notes": ["Where they are from."],\n "experiments"', '"notes"', 1,
     "the file has no experiments: it needs experiments"),
    ('"mine": [{', '"mein": [{', 4, "experiments has no 'mine': give what was "
     "published of mine.py by this name"),
    ('"mine": [{', '"mine": [], "yours": [{', 6, "experiments['mine'] is []: give "
     "a list with 1 entries at least"),
    ('"core": 20000000', '"cor": 20000000', 7, "['capacity_bps']['cor'] is 'cor': "
     "give the name of a link, 'core'"),
    ('20000000', '"20Mbit"', 7, "['core'] is '20Mbit': give a number"),
    ('20000000', '0', 7, "['core'] is 0: give a number above 0, bit/s"),
    ('{"core": 20000000}', '[]', 7, "['capacity_bps'] is []: give a dict {name of "
     "a link: bit/s}"),
    ('"parameters"', '"flows"', 8, "['setup'] has no 'flows': it has "
     "capacity_bps, parameters"),
    ('"packet_bytes"', '"packet"', 8, "is 'packet': give a parameter of --set, "
     "see tollway(1), or duration_s"),
    ('"initcwnd": 10', '"initcwnd": {}', 12, "['initcwnd'] is {}: give a value of "
     "--set, or a list of such"),
    ('"initcwnd": 10', '"initcwnd": NaN', 12, "['initcwnd'] is nan: give a value"),
    ('"rows": [{', '"rows": [], "x": [{', 9, "[0] has no 'x': it has setup, rows"),
    ('"name": "SBRM"', '"name": ""', 10, "['name'] is '': give a text of one"),
    ('"paper": "Table 1", ', '', 9, "['rows'][0] has no paper: it needs name, "
     "pairs, paper, setup, numbers"),
    ('"paper": "Table 1"', '"paper": 1', 10, "['paper'] is 1: give a text"),
    ('false', '0', 10, "['baseline'] is 0: give true or false"),
    ('[["sbrm", "delay"]],\n    "setup": {"d', '["sbrm", "delay"],\n    "setup": {"d',
     11, "['pairs'][0] is 'sbrm': give [congestion control, queue]"),
    ('[["sbrm", "delay"]],\n    "setup": {"d', '[["sbrm", 1]],\n    "setup": {"d',
     11, "['pairs'][0][1] is 1: give a text of one line"),
    ('"numbers": [\n     {"name": "utilisation", "metric": "utilization core", '
     '"value": 0.97', '"numbers": [7, {"name": "utilisation", "metric": '
     '"utilization core", "value": 0.97', 13, "['numbers'][0] is 7: give a dict "
     "with name, value, tolerance, better, metric, case, unit"),
    ('"utilization core", "value": 0.97', '"utilization", "value": 0.97', 14,
     "['metric'] is 'utilization': give a metric of the experiment with its link "
     "or flows, 'utilization core' or 'goodput_mbit p'"),
    ('0.97', '"97 %"', 14, "['value'] is '97 %': give a number"),
    ('"tolerance": 0,', '"tolerance": -1,', 17, "['tolerance'] is -1: give a "
     "number of 0 or more"),
    ('"tolerance": 0.05, "better": "higher"', '"tolerance": 0, "better": "more"',
     15, "['better'] is 'more': give 'higher' or 'lower'"),
    ('"case": "run"', '"case": "x"', 16, "['case'] is 'x': give the name of a "
     "case, 'run'"),
    ('"unit": "Mbit/s"', '"unit": "kbit/s"', 17, "['unit'] is 'kbit/s': give "
     '"Mbit/s", the unit of goodput_mbit p, or none'),
)


@pytest.mark.parametrize("old, new, line, said", WRONG,
                         ids=[str(number) for number in range(len(WRONG))])
def test_an_error_is_one_sentence_with_its_line(tmp_path, old, new, line, said):
    assert old in ALL, old
    path = written(tmp_path, ALL.replace(old, new, 1))
    with pytest.raises(TollwayError) as error:
        papers.get(path)
    sentence = str(error.value)
    assert sentence.startswith(f"{tmp_path / 'papers/all.json'}:{line}: "), sentence
    assert said in sentence and "\n" not in sentence, sentence


@pytest.mark.parametrize("given, said", [
    ('"all.json"', "published is 'all.json': there is no such file beside mine.py: "
     "give a list, or the path of a JSON file"),
    ("7", "published is 7: give a list, or the path of a JSON file")])
def test_the_experiment_names_a_list_or_a_file(tmp_path, given, said):
    path = written(tmp_path)
    pathlib.Path(path).write_text(MINE.replace('"papers/all.json"', given))
    with pytest.raises(TollwayError) as error:
        papers.get(path)
    assert str(error.value) == f"{path}:10: {said}"
