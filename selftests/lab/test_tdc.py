# SPDX-License-Identifier: GPL-2.0
"""tdc of the kernel's own selftests with our cases."""

import atexit
import shutil
import tarfile
import tempfile
from pathlib import Path

import pytest
from conftest import checks_of, run_check

GUEST_SCRIPT = "guest_tdc.py"


def GUEST_FILES(lab):
    """tdc.py and what it needs, out of the source of the lab's kernel."""
    source = lab.kernel.build / "source/tools/testing/selftests/tc-testing"
    if not source.exists():
        pytest.skip("the source of this kernel has no tc-testing")
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = Path(folder) / "tc-testing.tar"
    with tarfile.open(archive, "w") as tar:
        for path in [*source.glob("*.py"), *source.glob("plugin-lib/*.py")]:
            tar.add(path, f"tc-testing/{path.relative_to(source)}")
    return [archive]


pytestmark = pytest.mark.lab


@pytest.mark.parametrize("check", checks_of(GUEST_SCRIPT))
def test_tdc(guest, check):
    run_check(guest, check)
