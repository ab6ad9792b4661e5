// SPDX-License-Identifier: GPL-2.0
/*
 * What does a qdisc cost? Takes the root qdisc of a device, whatever it is,
 * keeps packets of a number of flows in it, and counts the cycles of taking
 * one out and putting it back, again and again. Nothing is sent.
 *
 * Cycles are those of the time stamp counter, so that this works in virtual
 * time too. The result stands in the kernel's log:
 *
 *	qdisc_cost: <kind> flows <flows> hashed <0|1> cycles <cycles>
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/udp.h>
#include <net/net_namespace.h>
#include <net/sch_generic.h>

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

static bool hashed = true;
module_param(hashed, bool, 0444);
MODULE_PARM_DESC(hashed, "packets come with their hash, as from a socket");

static u64 cycles_now(void)
{
	u32 low, high;

	asm volatile("lfence; rdtsc" : "=a" (low), "=d" (high) : : "memory");
	return (u64)high << 32 | low;
}

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
	ip->protocol = IPPROTO_UDP;
	ip->saddr = htonl(0x0a000001);
	ip->daddr = htonl(0x0a000002);
	ip->tot_len = htons(1500);
	skb_set_transport_header(skb, ETH_HLEN + sizeof(*ip));
	udp = skb_put_zero(skb, sizeof(*udp));
	udp->source = htons(1024 + flow % 60000);
	udp->dest = htons(5000 + flow / 60000);
	skb->protocol = htons(ETH_P_IP);
	skb->dev = dev;
	qdisc_skb_cb(skb)->pkt_len = 1514;
	return skb;
}

static int enqueue(struct Qdisc *q, struct sk_buff *skb)
{
	struct sk_buff *to_free = NULL;
	int ret;

	if (!hashed)
		skb_clear_hash(skb);
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

static u64 turn(struct Qdisc *q, u32 count)
{
	struct sk_buff *skb;
	u64 start;

	spin_lock_bh(qdisc_lock(q));
	start = cycles_now();
	while (count--) {
		skb = q->dequeue(q);
		if (!skb)
			break;
		enqueue(q, skb);
	}
	start = cycles_now() - start;
	spin_unlock_bh(qdisc_lock(q));
	return start;
}

static int __init qdisc_cost_init(void)
{
	u64 cycles, best = U64_MAX;
	struct net_device *dev;
	struct Qdisc *q;
	int err, i;

	rtnl_lock();
	dev = __dev_get_by_name(&init_net, device);
	if (!dev) {
		err = -ENODEV;
		goto out;
	}

	q = rtnl_dereference(dev->qdisc);
	err = fill(q, dev);
	if (!err) {
		turn(q, flows * each);
		/* The best of ten: what disturbs only ever adds. */
		for (i = 0; i < 10; i++) {
			cycles = turn(q, rounds / 10);
			best = min(best, cycles);
		}
		if (q->q.qlen != flows * each)
			err = -EIO;
	}
	if (!err)
		pr_info("%s flows %u hashed %d cycles %llu\n", q->ops->id,
			flows, hashed, div_u64(best, rounds / 10));
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
