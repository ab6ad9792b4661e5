# SPDX-License-Identifier: GPL-2.0
"""Names of the modules and congestion controls of this project, where they are
declared: in scripts/tollwaylib/components/modules.py, which needs nothing else
of the harness.
"""

import importlib.util
from pathlib import Path

_FILE = Path(__file__).parents[2] / "scripts/tollwaylib/components/modules.py"


def _declared():
    spec = importlib.util.spec_from_file_location("declared_modules", _FILE)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


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
