# SPDX-License-Identifier: GPL-2.0
"""First process of the lab's kernel, after scripts/lab/init has mounted the file systems.

Reads run.json in the directory .lab of the run: `modules` to load, `argv` to run, `cwd`,
`environment`. Writes the exit status to `status` beside it, and stops the kernel.
"""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

POWER_OFF = 0x4321FEDC
# OWN of places/machine.py.
OWN = Path("/run/tollway/out/.lab")


def main():
    """Do what run.json says."""
    run = json.loads((OWN / "run.json").read_text())
    status = 2
    try:
        for module in run["modules"]:
            loaded = subprocess.run(["insmod", module], text=True,
                                    stderr=subprocess.PIPE, check=False)
            if loaded.returncode:
                reason = loaded.stderr.strip().rpartition(": ")[2]
                print(f"tollway: the module {Path(module).name} does not load: "
                      f"{reason}", file=sys.stderr)
                return
        os.environ.update(run["environment"])
        status = subprocess.call(run["argv"], cwd=run["cwd"],
                                 timeout=run["virtual_s"])
        # As a shell has it where a signal ended the command.
        status = 128 - status if status < 0 else status
    except subprocess.TimeoutExpired:
        print(f"tollway: not finished after {run['virtual_s']} s of virtual time",
              file=sys.stderr)
    except OSError as error:
        print(f"tollway: the command {run['argv'][0]} cannot be run in the lab: "
              f"{error.strerror}", file=sys.stderr)
    finally:
        sys.stdout.flush()
        try:
            (OWN / "status").write_text(f"{status}\n")
        except OSError as error:
            print(f"tollway: the status cannot be written: {error.strerror}",
                  file=sys.stderr)
        os.sync()
        ctypes.CDLL(None).reboot(POWER_OFF)


if __name__ == "__main__":
    main()
