# SPDX-License-Identifier: GPL-2.0
"""Names of the modules and congestion controls of this project, where they are
declared: in scripts/tollwaylib/components, which needs nothing else of the harness
but its errors.
"""

import importlib.util
import sys
from pathlib import Path

_HARNESS = Path(__file__).parents[2] / "scripts/tollwaylib"


def _declared():
    # Not as tollwaylib: in the lab that is only the part of the guest.
    spec = importlib.util.spec_from_file_location(
        "harness", _HARNESS / "__init__.py",
        submodule_search_locations=[str(_HARNESS)])
    package = importlib.util.module_from_spec(spec)
    sys.modules["harness"] = package
    spec.loader.exec_module(package)
    return importlib.import_module("harness.components.modules")


_modules = _declared()
# Queues first, as they are loaded.
MODULES = tuple(sorted(_modules.OURS,
                       key=lambda name: not name.startswith("sch_")))
# {module: its congestion controls}, and all of them.
CONTROLS_OF = _modules.CONTROLS
CONTROLS = sum(CONTROLS_OF.values(), ())
# Those that no namespace of a user may have as its default.
RESTRICTED = tuple(cc for cc in CONTROLS if cc in _modules.RESTRICTED)
# {module: those that a namespace may have as its default}
DEFAULTS_OF = {module: tuple(cc for cc in controls if cc not in RESTRICTED)
               for module, controls in CONTROLS_OF.items()}
QUEUES = {module.name: module.queue for module in _modules.MODULES
          if module.queue}
