#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Names of the congestion controls in the folders tcp_*, as a C header on standard
output. A control may have several tcp_congestion_ops."""

import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
OPS = re.compile(r"struct tcp_congestion_ops \w+[^;{]*= \{(.*?)\n\};", re.S)
NAME = re.compile(r'\.name\s*=\s*"(\w+)"')

names = [name for path in sorted(TOP.glob("tcp_*/*.c"))
         for body in OPS.findall(path.read_text())
         for name in NAME.findall(body)]
assert names
print("static const char * const cc_names[] = {")
for one in dict.fromkeys(names):
    print(f'\t"{one}",')
print("};")
