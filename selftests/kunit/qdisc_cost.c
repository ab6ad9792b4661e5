// SPDX-License-Identifier: GPL-2.0
/*
 * What does a qdisc cost? Takes the root qdisc of a device, whatever it is,
 * keeps packets of a number of flows in it, and counts the cycles of taking
 * one out and putting it back, again and again. Nothing is sent.
 *
 * Cycles are those of the time stamp counter, so that this works in virtual
 * time too. The result stands in the kernel's log:
 *
 *	qdisc_cost: <kind> flows <flows> hashed <0|1> cycles <cycles> \
 *		passed <ns> clock <cycles> longest <cycles>
 *
 * In virtual time a clock takes next to no time to read, but moves on by it:
 * passed is what it did for a packet. clock is what reading the time stamp
 * counter takes here. longest is what the packet took that took longest, of all
 * that were in the queue.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/ktime.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/udp.h>
#include <net/net_namespace.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/sch_generic.h>

#include "cost.h"

static char *device = "";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "device in the first namespace, down, with the qdisc");

static uint flows = 1;
module_param(flows, uint, 0444);
MODULE_PARM_DESC(flows, "flows with packets in the queue");

static uint each = 4;
module_param(each, uint, 0444);
MODULE_PARM_DESC(each, "packets of each flow in the queue");

static uint rounds = 200000;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "packets that leave and come back");

static uint warm = 40000;
module_param(warm, uint, 0444);
MODULE_PARM_DESC(warm, "the same before that, while time passes");

static uint size = 1514;
module_param(size, uint, 0444);
MODULE_PARM_DESC(size, "bytes of a packet, as a table of sizes may make them");

static bool hashed = true;
module_param(hashed, bool, 0444);
MODULE_PARM_DESC(hashed, "packets come with their hash, as from a socket");

static bool fresh;
module_param(fresh, bool, 0444);
MODULE_PARM_DESC(fresh, "what a queue wrote into the header is undone in between");

/* Of the IP header, the same in all packets. */
static __sum16 header_sum;

/* One full frame of UDP, flow by port; payload takes no memory. */
static struct sk_buff *packet(struct net_device *dev, u32 flow)
{
	struct sk_buff *skb = alloc_skb(256, GFP_KERNEL);
	struct udphdr *udp;
	struct iphdr *ip;

	if (!skb)
		return NULL;

	skb_reserve(skb, 64);
	skb_reset_mac_header(skb);
	skb_put_zero(skb, ETH_HLEN);
	skb_reset_network_header(skb);
	skb_set_network_header(skb, ETH_HLEN);
	ip = skb_put_zero(skb, sizeof(*ip));
	ip->version = 4;
	ip->ihl = 5;
	ip->tos = INET_ECN_ECT_0;
	ip->frag_off = htons(IP_DF);
	ip->ttl = 64;
	ip->protocol = IPPROTO_UDP;
	ip->saddr = htonl(0x0a000001);
	ip->daddr = htonl(0x0a000002);
	ip->tot_len = htons(1500);
	ip_send_check(ip);
	header_sum = ip->check;
	skb_set_transport_header(skb, ETH_HLEN + sizeof(*ip));
	udp = skb_put_zero(skb, sizeof(*udp));
	udp->source = htons(1024 + flow % 60000);
	udp->dest = htons(5000 + flow / 60000);
	skb->protocol = htons(ETH_P_IP);
	skb->dev = dev;
	qdisc_skb_cb(skb)->pkt_len = size;
	return skb;
}

static int enqueue(struct Qdisc *q, struct sk_buff *skb)
{
	struct sk_buff *to_free = NULL;
	int ret;

	if (!hashed)
		skb_clear_hash(skb);
	if (fresh) {
		ip_hdr(skb)->tos = INET_ECN_ECT_0;
		ip_hdr(skb)->id = 0;
		ip_hdr(skb)->check = header_sum;
	}
	ret = q->enqueue(skb, q, &to_free);
	kfree_skb_list(to_free);
	return ret;
}

static int fill(struct Qdisc *q, struct net_device *dev)
{
	struct sk_buff *skb;
	u32 i;

	for (i = 0; i < flows * each; i++) {
		skb = packet(dev, i % flows);
		if (!skb)
			return -ENOMEM;
		skb_get_hash(skb);
		spin_lock_bh(qdisc_lock(q));
		enqueue(q, skb);
		spin_unlock_bh(qdisc_lock(q));
	}
	/* Two flows may share a queue, but all packets must be there. */
	return q->q.qlen == flows * each ? 0 : -ENOSPC;
}

/* Take @count packets out, each to be put back: cycles. */
static u64 turn(struct Qdisc *q, u32 count)
{
	struct sk_buff *skb;
	u64 start;

	start = cost_cycles();
	while (count--) {
		skb = q->dequeue(q);
		if (!skb)
			break;
		enqueue(q, skb);
	}
	return cost_cycles() - start;
}

/* The best of ten: what disturbs only ever adds. */
static u64 cycles_of(struct Qdisc *q)
{
	u64 best = U64_MAX;
	int i;

	for (i = 0; i < 10; i++) {
		/* No time passes while soft interrupts are off. */
		spin_lock_bh(qdisc_lock(q));
		best = min(best, turn(q, rounds / 10));
		spin_unlock_bh(qdisc_lock(q));
	}
	return div_u64(best, rounds / 10);
}

/* The longest of one pass of the queue, the least of five: what disturbs only adds. */
static u64 longest_cycles(struct Qdisc *q)
{
	u64 least = U64_MAX, longest;
	u32 i, count;

	for (i = 0; i < 5; i++) {
		longest = 0;
		spin_lock_bh(qdisc_lock(q));
		for (count = flows * each; count; count--)
			longest = max(longest, turn(q, 1));
		spin_unlock_bh(qdisc_lock(q));
		least = min(least, longest);
	}
	return least;
}

/* ns that pass in virtual time for a packet, of which laws make prices. */
static u64 passed_ns(struct Qdisc *q)
{
	u64 start;

	/* Nobody else uses the queue, and there is one CPU. */
	spin_lock(qdisc_lock(q));
	start = ktime_get_ns();
	turn(q, warm);
	start = ktime_get_ns() - start;
	spin_unlock(qdisc_lock(q));
	return div_u64(start, warm);
}

/* What reading the time stamp counter takes. */
static u64 clock_cycles(void)
{
	u64 start, least = U64_MAX;
	int i;

	for (i = 0; i < 1000; i++) {
		start = cost_cycles();
		least = min(least, cost_cycles() - start);
	}
	return least;
}

static int __init qdisc_cost_init(void)
{
	struct net_device *dev;
	u64 cycles, passed;
	struct Qdisc *q;
	int err;

	rtnl_lock();
	dev = __dev_get_by_name(&init_net, device);
	if (!dev) {
		err = -ENODEV;
		goto out;
	}

	q = rtnl_dereference(dev->qdisc);
	err = fill(q, dev);
	if (!err) {
		passed = passed_ns(q);
		cycles = cycles_of(q);
		if (q->q.qlen != flows * each)
			err = -EIO;
	}
	if (!err)
		pr_info("%s flows %u hashed %d cycles %llu passed %llu clock %llu longest %llu\n",
			q->ops->id, flows, hashed, cycles, passed,
			clock_cycles(), longest_cycles(q));
	qdisc_reset(q);
out:
	rtnl_unlock();
	return err;
}

static void __exit qdisc_cost_exit(void)
{
}

module_init(qdisc_cost_init)
module_exit(qdisc_cost_exit)
MODULE_DESCRIPTION("Cost of a qdisc in cycles");
MODULE_LICENSE("GPL");
