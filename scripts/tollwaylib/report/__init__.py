# SPDX-License-Identifier: GPL-2.0
"""What is shown of results: tables, figures, a page."""
