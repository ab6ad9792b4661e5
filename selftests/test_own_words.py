# SPDX-License-Identifier: GPL-2.0
"""A user's own experiment: words that only a kernel knows, spelling, and what it is about."""

import argparse
import subprocess

import pytest
from test_own import GOOD, job, written

from tollwaylib import papers
from tollwaylib.commands import run
from tollwaylib.commands.list import command_list
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
