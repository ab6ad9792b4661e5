# SPDX-License-Identifier: GPL-2.0
"""The presentation of results: tables, figures, a page."""
