# SPDX-License-Identifier: GPL-2.0
"""The Debian packages of `make deb`: what is in them, and that lintian is
silent. That they install on a clean system and leave it so is for
selftests/clean-system, which needs root and a network: the long form."""

import re
import subprocess

import pytest
from test_clean_system import in_clean_system
from test_house import TOP, VERSION, sh


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """{name: path} of the packages, built away from the checkout."""
    out = tmp_path_factory.mktemp("deb")
    done = sh("make", "deb", f"O={out}")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return {path.name.partition("_")[0]: path
            for path in (out / "deb").glob("*.deb")}


def contents(package):
    """Names of the files in a package."""
    listed = subprocess.run(["dpkg-deb", "--contents", package], text=True,
                            check=True, capture_output=True).stdout
    return {line.split()[5].removeprefix(".") for line in listed.splitlines()}


def test_packages(packages):
    assert set(packages) == {"tollway-dkms", "tollway-tools"}
    for path in packages.values():
        assert f"_{VERSION}_" in path.name


def test_sources_of_the_modules(packages):
    """All that the modules are built of, and what says how."""
    files = contents(packages["tollway-dkms"])
    source = f"/usr/src/tollway-{VERSION}"
    tracked = sh("git", "ls-files", "include", "sch_*", "tcp_*")
    names = tracked.stdout.split() if tracked.returncode == 0 else []
    for name in [*names, "dkms.conf", "scripts/build-modules.sh"]:
        assert f"{source}/{name}" in files
    assert not [name for name in files if name.endswith((".o", ".ko"))]


def test_tools(packages):
    files = contents(packages["tollway-tools"])
    for name in ("tollway", "tollway-traffic", "tollway-qsample"):
        assert f"/usr/bin/{name}" in files
    for page in (TOP / "tools/man").glob("*.[1-8]"):
        assert f"/usr/share/man/man{page.suffix[1:]}/{page.name}.gz" in files
    for plugin in (TOP / "tools").glob("q_*.c"):
        assert [name for name in files
                if name.endswith(f"/tc/{plugin.stem}.so")], plugin
    # Nothing of the packaging, of the tests, or that was built.
    assert not [name for name in files if re.search(
        r"/debian/|/selftests/(?!kunit/|$)|__pycache__|\.o$|slow_poll\.so", name)]


def test_lintian_is_silent(packages):
    changes = next(packages["tollway-dkms"].parent.glob("*.changes"))
    done = sh("lintian", "--allow-root", "--display-info", "--pedantic",
              changes)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout


def test_make_deb_installs_what_the_packages_are_built_with():
    """dpkg-checkbuilddeps wants debian/control's, and build-essential."""
    control = (TOP / "tools/debian/control").read_text()
    depends = re.search(r"^Build-Depends:((?:.*,\n)*.*)", control, re.M)[1]
    wanted = {"build-essential"}
    for word in re.split(r",\s*", depends.strip()):
        name = re.match(r"[a-z0-9.-]+", word)[0]
        wanted.add({"dh-sequence-dkms": "dh-dkms", "dh-sequence-python3":
                    "dh-python"}.get(name, name.removesuffix("-compat")))
    script = (TOP / "scripts/install-dependencies").read_text()
    assert wanted <= set(re.search('^deb="(.*)"', script, re.M)[1].split())


@pytest.mark.full
def test_clean_system(packages, tmp_path):
    """They and make install, in a system made for it, and without a trace."""
    in_clean_system(tmp_path, "packages", "bookworm",
                    next(iter(packages.values())).parent)
