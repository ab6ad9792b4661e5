# SPDX-License-Identifier: GPL-2.0
"""`tollway lab`."""

import shutil

from ..ends import HOLDS as EXIT_HOLDS
from ..errors import TollwayError
from ..places.machine import Lab, print_line, scratch_dir, shell
from ..progress import Progress


def command_lab(arguments):
    """Build, describe or enter the lab. Raises TollwayError if `exec` has no command."""
    argv = getattr(arguments, "argv", [])
    argv = argv[1:] if argv[:1] == ["--"] else argv
    if arguments.action == "exec" and not argv:
        raise TollwayError("tollway lab exec needs a command")
    progress = Progress()
    lab = Lab(arguments.flavour, progress)
    progress.done()
    if arguments.action in ("build", "info"):
        kernel = lab.kernel
        print(f"kernel   {kernel.version} ({kernel.flavour}), "
              f"config sha256 {kernel.config_sha256[:16]}\n"
              f"patches  {', '.join(kernel.patches)}\n"
              f"image    {kernel.image}\n"
              f"guest    {'seccomp' if kernel.has_seccomp else 'ptrace'}\n"
              f"modules  {lab.modules}\ntools    {lab.tools}", flush=True)
        print(f"boots    in {lab.try_boot():.1f} s")
        return EXIT_HOLDS
    out_dir = arguments.out or scratch_dir()
    try:
        if arguments.action == "shell":
            return shell(lab, out_dir, arguments.seed)
        return lab.run(argv, out_dir, seed=arguments.seed,
                       wall_s=arguments.wall, virtual_s=arguments.virtual,
                       on_line=print_line)
    finally:
        if not arguments.out and not (out_dir / "kernel.log").exists():
            shutil.rmtree(out_dir, ignore_errors=True)
