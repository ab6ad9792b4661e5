#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Build the modules for one kernel, away from the source tree.
#
# usage: build-modules.sh KDIR OUT [make arguments, such as ARCH=um W=1 C=1]
#
# The sources are copied to OUT (kbuild writes beside them), probed against the
# kernel and built there; OUT/*/*.ko is the result.
set -eu

[ $# -ge 2 ] || { echo "usage: build-modules.sh KDIR OUT [make arguments]" >&2; exit 2; }
top=$(cd "$(dirname "$0")/.." && pwd)
kdir=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
shift 2

modules=$(cd "$top" && for kbuild in tcp_*/Kbuild sch_*/Kbuild; do
	echo "${kbuild%/Kbuild}"
done)
for dir in include $modules selftests/kunit; do
	[ -d "$top/$dir" ] || continue
	mkdir -p "$out/$dir"
	cp -Rup "$top/$dir/." "$out/$dir/"
done

"$top/include/compat/probe.sh" "$kdir" "$out" "$@"

{
	echo "# Made by scripts/build-modules.sh"
	echo "subdir-ccflags-y += -I$out -I$out/include -I$out/include/uapi -I$out/include/compat"
	for dir in $modules; do
		echo "obj-m += $dir/"
	done
	# KUnit test modules only where the kernel can load them.
	echo "obj-\$(if \$(CONFIG_KUNIT),m) += $([ ! -f "$out/selftests/kunit/Kbuild" ] || echo selftests/kunit/)"
} > "$out/Kbuild"

make -C "$kdir" "$@" M="$out" modules
