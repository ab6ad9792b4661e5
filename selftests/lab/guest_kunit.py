# SPDX-License-Identifier: GPL-2.0
"""Load the KUnit modules that lie in the working directory."""

import re
from pathlib import Path

import guest_base
from guest_base import note, run

FIXP_CASES = {"fixp_exp_neg_test", "fixp_ln_test", "fixp_ln_lost_test",
              "fixp_pow_test", "fixp_roundtrip_test", "fixp_mul_test",
              "fixp_mul_div_test"}


def ktap(text):
    """{name of a case or suite: ok} of a kernel log, and the other lines."""
    found, rest = {}, []
    for line in text.splitlines():
        line = re.sub(r"^\[ *[\d.]+\] ?", "", line)
        match = re.match(r"\s*(not )?ok \d+ (?:- )?(\S+)", line)
        if match:
            found[match[2]] = not match[1]
        else:
            rest.append(line)
    return found, rest


PP_CASES = {"pp_fuzzy_test", "pp_estimator_test", "pp_estimator_range_test",
            "pp_law_test", "pp_drain_short_test", "pp_sudden_test", "pp_rise_test",
            "pp_stop_test", "pp_train_test", "pp_bunch_test", "pp_gro_test",
            "pp_wait_test", "pp_room_test"}

DELAY_CASES = {"delay_rate_test", "delay_price_test", "delay_slow_test",
               "delay_rise_test", "delay_full_test", "delay_lead_test",
               "delay_rest_test", "delay_faster_test", "delay_burst_test",
               "delay_ahead_test", "delay_start_test",
               "delay_range_test", "delay_fresh_test"}

ALPHA_CASES = {"alpha_example_test", "alpha_gain_range_test",
               "alpha_rise_test", "alpha_fall_test", "alpha_fair_test",
               "alpha_units_test"}

ACCOUNTS_CASES = {"accounts_first_test", "accounts_range_test",
                  "accounts_set_test",
                  "accounts_oldest_test", "accounts_crowd_test"}

SPARSE_CASES = {"sparse_burst_test", "sparse_call_test", "sparse_order_test",
                "sparse_credit_test", "sparse_spare_test", "sparse_all_test",
                "sparse_reset_test"}

STATES_CASES = {"cc_zero_test", "cc_leftover_test", "cc_after_init_test",
                "cc_unlocked_info_test", "cc_any_order_test"}


def run_module(name, cases):
    """Load a KUnit module: each of its cases must be there and hold."""
    run("dmesg --clear")
    run(["insmod", "kunit.ko", *(["enable=1"] if "enable" in
                                 run("modinfo kunit.ko") else [])])
    try:
        assert Path(f"{name}.ko").exists(), "the module was not built"
        run(f"insmod {name}.ko")
        text = run("dmesg")
        # What fails here must not make the next one fail.
        run(f"rmmod {name}")
    finally:
        run("rmmod kunit")
    found, rest = ktap(text)
    for line in rest:
        if "worst error" in line or "seed" in line:
            note(line.strip())
    bad = [name for name, ok in found.items() if not ok]
    assert not bad, f"{bad}:\n" + "\n".join(
        line for line in rest if line.strip())[:1500]
    # A case that is not named here could go away without notice.
    ran = {name for name in found if not name.startswith("tollway_")}
    assert ran == cases, f"{sorted(ran ^ cases)}: {text}"


def check_fixp():
    """tollway_fixp.h holds its bounds over the whole domain."""
    run_module("fixp_kunit", FIXP_CASES)


def check_pp():
    """The arithmetic of tcp_pp is PP94's."""
    run_module("pp_kunit", PP_CASES)


def check_alpha():
    """Rule (3) replays ALPHA's section V, and the rate's steps are exact."""
    run_module("alpha_kunit", ALPHA_CASES)


def check_delay():
    """The price law delay of sch_sbrm, on any link and on any input."""
    run_module("delay_kunit", DELAY_CASES)


def check_accounts():
    """Accounts of marks: flows of one set, and more than it has room for."""
    run_module("accounts_kunit", ACCOUNTS_CASES)


def check_sparse():
    """Which packets leave first: bursts, order within a flow, and floods."""
    run_module("sparse_kunit", SPARSE_CASES)


def check_states():
    """Callbacks of each congestion control need no init() before them."""
    run_module("cc_states_kunit", STATES_CASES)


if __name__ == "__main__":
    guest_base.main(globals())
