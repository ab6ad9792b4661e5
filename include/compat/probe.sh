#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Find out by compiling what a kernel has, and write compat_config.h.
#
# usage: probe.sh KDIR OUT [make arguments, such as ARCH=um or LLVM=1]
#
# OUT/compat_config.h defines a HAVE_ symbol for each test that compiles. All
# tests are built by one kbuild run in OUT/probe; the file is replaced only if
# it changes, so that nothing is rebuilt in vain.
set -eu

kdir=$1 out=$2
shift 2
rm -rf "$out/probe"
mkdir -p "$out/probe"

probe() { # NAME: the body of a file comes on standard input
	cat > "$out/probe/$1.c"
	echo "obj-m += $1.o" >> "$out/probe/Kbuild"
	names="${names-} $1"
}

# Must compile, or nothing said below means anything.
probe baseline <<'C'
#include <net/tcp.h>
#include <net/sch_generic.h>
C
probe qdisc_pkt_segs <<'C'
#include <net/sch_generic.h>
void f(struct sk_buff *skb);
void f(struct sk_buff *skb) { qdisc_skb_cb(skb)->pkt_segs = 1; }
C
probe net_gso_h <<'C'
#include <net/gso.h>
C
probe qdisc_drop_reason <<'C'
#include <net/sch_generic.h>
void f(struct sk_buff *skb);
void f(struct sk_buff *skb) { tcf_set_qdisc_drop_reason(skb, QDISC_DROP_OVERLIMIT); }
C
probe skb_drop_reason_qdisc <<'C'
#include <net/pkt_cls.h>
void f(struct sk_buff *skb);
void f(struct sk_buff *skb) { tcf_set_drop_reason(skb, SKB_DROP_REASON_QDISC_OVERLIMIT); }
C
probe tcf_classify_qdisc <<'C'
#include <net/pkt_cls.h>
int f(struct sk_buff *skb, struct tcf_proto *tp, struct tcf_result *res);
int f(struct sk_buff *skb, struct tcf_proto *tp, struct tcf_result *res) { return tcf_classify_qdisc(skb, tp, res, false); }
C
probe tcf_classify_block <<'C'
#include <net/pkt_cls.h>
int f(struct sk_buff *skb, struct tcf_proto *tp, struct tcf_result *res);
int f(struct sk_buff *skb, struct tcf_proto *tp, struct tcf_result *res) { return tcf_classify(skb, NULL, tp, res, false); }
C
probe tc_qdisc_stats_dump <<'C'
#include <net/pkt_sched.h>
bool f(struct Qdisc *sch, struct qdisc_walker *arg);
bool f(struct Qdisc *sch, struct qdisc_walker *arg) { return tc_qdisc_stats_dump(sch, 1, arg); }
C
probe gnet_stats_basic_sync <<'C'
#include <net/sch_generic.h>
void f(struct gnet_stats_basic_sync *b);
void f(struct gnet_stats_basic_sync *b) { gnet_stats_basic_sync_init(b); }
C
probe timer_delete_sync <<'C'
#include <linux/timer.h>
void f(struct timer_list *t);
void f(struct timer_list *t) { timer_delete_sync(t); }
C
probe tcp_snd_cwnd_set <<'C'
#include <net/tcp.h>
void f(struct tcp_sock *tp);
void f(struct tcp_sock *tp) { tcp_snd_cwnd_set(tp, tcp_snd_cwnd(tp)); }
C
probe tcp_send_ack_flags <<'C'
#include <net/tcp.h>
void f(struct sock *sk);
void f(struct sock *sk) { __tcp_send_ack(sk, 0, 0); }
C
probe cong_control_ack <<'C'
#include <net/tcp.h>
static void g(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs) { }
struct tcp_congestion_ops f = { .cong_control = g };
C
probe tso_segs <<'C'
#include <net/tcp.h>
static u32 g(struct sock *sk, u32 mss_now) { return 2; }
struct tcp_congestion_ops f = { .tso_segs = g };
C
probe ctl_table_const <<'C'
#include <linux/sysctl.h>
static int g(const struct ctl_table *t, int w, void *b, size_t *l, loff_t *p) { return 0; }
proc_handler *f = g;
C
probe net_sysctl_sz <<'C'
#include <net/net_namespace.h>
void *f(struct net *net, struct ctl_table *t);
void *f(struct net *net, struct ctl_table *t) { return register_net_sysctl_sz(net, "net", t, 1); }
C

log="$out/probe/log"
make -k -C "$kdir" "$@" M="$(cd "$out/probe" && pwd)" \
	KBUILD_MODPOST_NOFINAL=1 KBUILD_MODPOST_WARN=1 \
	KCFLAGS="-Werror=incompatible-pointer-types -Wno-missing-declarations -Wno-missing-prototypes" \
	modules > "$log" 2>&1 || true

if [ ! -e "$out/probe/baseline.o" ]; then
	echo "probe.sh: no module can be compiled against $kdir: see $log" >&2
	exit 1
fi

{
	echo "/* Made by include/compat/probe.sh from compile tests. */"
	for name in $names; do
		[ "$name" = baseline ] || [ ! -e "$out/probe/$name.o" ] ||
			echo "#define HAVE_$(echo "$name" | tr '[:lower:]' '[:upper:]') 1"
	done
} > "$out/compat_config.h.new"
if cmp -s "$out/compat_config.h.new" "$out/compat_config.h"; then
	rm "$out/compat_config.h.new"
else
	mv "$out/compat_config.h.new" "$out/compat_config.h"
fi
