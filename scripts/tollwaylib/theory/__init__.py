# SPDX-License-Identifier: GPL-2.0
"""What theory says, of the papers."""
