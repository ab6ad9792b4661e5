# SPDX-License-Identifier: GPL-2.0
"""Tollway's harness: experiments on congestion pricing and packet pair."""
