# SPDX-License-Identifier: GPL-2.0
"""A user's own experiment: words that only a kernel knows, spelling, and what it is about."""

import argparse
import os
import re
import subprocess

import pytest
from test_own import GOOD, job, written

from tollwaylib import papers
from tollwaylib.commands import run
from tollwaylib.commands.list import command_list
from tollwaylib.errors import TollwayError
from tollwaylib.experiments import own_words, plan
from tollwaylib.paths import TOP


def test_words_that_only_a_kernel_knows(tmp_path):
    """Where it refuses one, the sentence has the place in the file; not where the word
    is of the command line."""
    path = written(tmp_path, GOOD.replace('"fq_codel"', '"codel tarket 1"').replace(
        '"pfifo limit 50"', '"red limit 5"').replace('"cc": "sbrm"', '"cc": "rm"'))
    experiment = papers.get(path)
    for sentence, place in (
            ("--aqm 'codel tarket 1': what", f"{path}:20: queue is 'codel tarket 1': what"),
            ("--aqm 'red limit 5': why",
             f"{path}:5: links['home']['queue'] is 'red limit 5': why"),
            ("--cc rm: no", f"{path}:13: flows[1]['cc'] is 'rm': no"),
            ("--aqm 'pfifo limit 300': of a name", None), ("other", None)):
        given = argparse.Namespace(cc=None, aqm=None)
        assert run.refused(given, experiment, sentence) == (place or sentence)
        given = argparse.Namespace(cc="rm", aqm=sentence.split("'")[1::2] and
                                   sentence.split("'")[1])
        assert run.refused(given, experiment, sentence) == sentence


def test_a_kernel_refuses_a_word_with_its_place(tmp_path):
    path = written(tmp_path, GOOD.replace('"pfifo limit 50"', '"pfifo limt 50"'))
    done = subprocess.run([str(TOP / "scripts/tollway"), "run", path, "--out",
                           str(tmp_path / "out")], text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, check=False, timeout=600)
    assert done.returncode == 2
    assert f"tollway: {path}:5: links['home']['queue'] is 'pfifo limt 50': pfifo: unknown " \
        'parameter "limt"' in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("field", ["metrics", "bounds", "published", "figures"])
def test_both_spellings_of_utilisation(tmp_path, field):
    begin = GOOD.index(f"{field} = ")
    text = GOOD[:begin] + GOOD[begin:].replace('utilization', 'utilisation', 1)
    assert text != GOOD
    made, usual = (job(papers.get(written(tmp_path, one))) for one in (text, GOOD))
    assert made == usual


def test_a_file_says_what_it_is_about(tmp_path, capsys):
    """By its docstring, in tollway list and in results, which reports are made of."""
    about = "Two flows of one\nlink, and a call.\n\nAnother paragraph.\n"
    experiment = papers.get(written(tmp_path, f'"""{about}"""\n{GOOD}'))
    assert job(experiment)["about"] == experiment.about \
        == "Two flows of one link, and a call.\n\nAnother paragraph."
    command_list(written(tmp_path, f'"""{about}"""\n{GOOD}'))
    assert "\n\nTwo flows of one link, and a call.\n\nAnother" in capsys.readouterr().out
    assert "about" not in job(papers.get(written(tmp_path, GOOD)))
    # A built-in one is found by its name.
    assert "about" not in job(papers.get("pp-share"))


WRONG = {
    "a function": ("cases = {", "def cases(): pass\n_c = {", 28, "cases is <function"),
    "a module": ('queue = "fq_codel"', "import queue", 20, "queue is <module"),
    "in a block": ('cc = "cubic"', 'if True:\n    cc = "cubik"', 20, "cc is 'cubik'"),
    "a link twice": ('"home": {', '"core": {', 4, "this dict has 'core' twice"),
    "a field twice": ('"count": 2', '"count": 2, "count": 3', 12,
                      "this dict has 'count' twice"),
    "a case": ('"whole": {', '"run": {', 29, "cases has 'run', which is the name of a"),
    "a setup": ('"initcwnd": 3', '"setup": "paper"', 27, "settings has no 'setup': give"),
    "a tool": ("sleep '9 9'", "tollway-trafic", 34, "there is no 'tollway-trafic'"),
    "published of no control": ('"cc": "sbrm", "queue"', '"cc": "sbrn", "queue"', 37,
                                "published[0]['cc'] is 'sbrn': did you mean 'sbrm'?"),
    "published of no queue": ('"queue": "delay"', '"queue": "dealy"', 37,
                              "published[0]['queue'] is 'dealy': did you mean 'delay'?"),
    "a long path": ("published = [", f'published = "{"x" * 9999}"\n_p = [', 36,
                    "published is 'xxx"),
    "a docstring": ("title", '"\\x1b[31m"\ntitle', 1, "the docstring has '\\x1b'"),
    "half a character": ("title", '"\\ud800"\ntitle', 1, "the docstring has '\\ud800'"),
    "several lines": ("title", 'raise ValueError("a\\nb")\ntitle', 1, "ValueError: a b$"),
    "nothing said": ("title", "assert False\ntitle", 1, "AssertionError$"),
    "no exception": ("title", "raise GeneratorExit\ntitle", 1, "GeneratorExit$"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_was_accepted_or_had_no_place(name, tmp_path):
    old, new, line, sentence = WRONG[name]
    assert old in GOOD
    path = written(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(TollwayError) as raised:
        papers.get(path)
    said, end = str(raised.value), sentence.endswith("$")
    assert said.startswith(f"{path}:{line}: ") and sentence.rstrip("$") in said
    assert "\n" not in said and (not end or said.endswith(sentence[:-1]))


@pytest.mark.parametrize("begin", ["\ufeff", "from __future__ import annotations\n"])
def test_what_python_accepts(begin, tmp_path):
    """A mark of the encoding, and what an import of a feature assigns."""
    made, usual = (job(papers.get(written(tmp_path, text)))
                   for text in (begin + GOOD, GOOD))
    assert made == usual


def test_a_name_twice_in_a_json_file(tmp_path):
    (tmp_path / "p.json").write_text('{"experiments": {},\n"experiments": {}}')
    path = written(tmp_path, re.sub("published = .*?}]", 'published = "p.json"', GOOD,
                                    flags=re.S))
    with pytest.raises(TollwayError, match="p.json:2: this dict has 'experiments' twice"):
        papers.get(path)


def test_programs_of_tools():
    """Those that may be absent before a run are those that it builds."""
    rules = (TOP / "tools/Makefile").read_text()
    built = re.search(r"^PROGRAMS := (.*)$", rules, re.M)[1].replace("$(O)/", "").split()
    assert sorted(own_words._TOOLS) == sorted([
        *built, *(path.name for path in (TOP / "tools").glob("tollway-*")
                  if os.access(path, os.X_OK))])


def test_rates_are_those_of_the_file(tmp_path):
    """--set rate_mbit would have no effect."""
    with pytest.raises(TollwayError, match="--set rate_mbit: the links of an experiment of "
                       "your own have their rates in its file"):
        plan.parse_settings(papers.get(written(tmp_path, GOOD)), ["rate_mbit=5"])
