# SPDX-License-Identifier: GPL-2.0
"""What an experiment is made of, and the jobs that it becomes."""
