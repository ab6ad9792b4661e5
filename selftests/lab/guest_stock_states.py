# SPDX-License-Identifier: GPL-2.0
"""The checks of guest_states.py on a kernel of a distribution, in real time."""

import guest_base
import guest_states

# A minute's rest before each look is for a clock that does not wait.
guest_base.REST_S = 3

if __name__ == "__main__":
    guest_base.main(vars(guest_states))
