// SPDX-License-Identifier: GPL-2.0
/*
 * Sparse flows: a flow that sends little does not wait for those that send much
 *
 * In a FIFO the first packets of a page, a question to DNS and a call wait for the
 * packets of transfers that fill the link. So the queue has two parts, and the first
 * part leaves first. A packet joins the first part if its flow is sparse.
 *
 * A flow is sparse as long as its bucket holds at most 30 full frames. That is what the
 * first two flights of a connection take (10 and 20). A bucket leaks 9 to 16 frames a
 * second (with HZ of 300, and of 250 or 1000), 113 to 190 kb/s: a call of 50 packets of
 * 234 bytes a second (G.711 over IPv6) needs 94. What a flow sends beyond that fills its
 * bucket up to 64 KB: then it must pause for 1 to 1.6 s before it is sparse again, and for
 * 2.8 to 4.7 s until it has all 30 frames. If the share of each flow is below that rate, as
 * of ten flows on 1 Mb/s, all flows are sparse, and packets leave in the order of their
 * arrival: none overtakes while no packet of another flow waits. The ACKs of a transfer are
 * a flow as well: with one ACK of 66 bytes for two segments they are sparse up to 5 to 8 Mb/s
 * of data.
 *
 * Pages of the HTTP model at 70 % load, median and 99th percentile in s (means of six
 * seeds, before packets of sparse flows waited for each other; README has the command for
 * one): 0.113 and 1.86 in a FIFO, 0.084 and 1.79 with 30 frames, and 0.090 and 1.72 with
 * cubic over fq_codel. When l of the law delay was 2, these were 0.085 and 1.82 with 20
 * frames, 0.083 and 1.74 with 30, and 0.082 and 1.73 with 42.
 * Longest queue while 36 flows start on 100 Mb/s (three seeds): 27 to 36 ms in a FIFO, 36
 * to 51 with 30 frames, as the first flights do not see the queue.
 *
 * Four rules limit what this does to others:
 *
 * - No flow is reordered. A packet does not join the first part while an earlier one of
 *   its bucket is in the second part. As packets leave a part in the order in which
 *   they came, the number of the last one tells. (Packets with another hash are another
 *   flow: IPv4 fragments without ports, what a socket of Linux sends after a timeout, and
 *   the flows within a tunnel that begins on this host.)
 * - While a packet of a flow that is not sparse waits, the first part may take 64 frames and as
 *   many bytes as leave the second part: half of the link in the long run. A flood in
 *   which each packet is a new flow cannot stop the others.
 * - The last 16 of these frames are for flows whose buckets hold at most two. By the first
 *   rule a call of which one packet had to join the second part would follow it there with
 *   the next, for as long as the queue takes longer than a packet of it to come: pages that
 *   take all of the credit must not do that to calls.
 * - The price is one for all, and each packet that leaves pays it. A packet that should
 *   be dropped but is the last one, as those of the second part often are, is paid for
 *   by the next one of its flow: see sbrm_owe().
 *
 * Two flows with one bucket count as one: beside 36 large flows, one new flow in a
 * hundred waits as they do.
 *
 * All functions run under the root lock of the qdisc, but for sbrm_sparse_init().
 */

#include <linux/errno.h>
#include <linux/mm.h>

#include "sbrm_sparse.h"

/**
 * sbrm_sparse_init() - make the buckets of a queue, in which nobody has sent
 * @sparse: parts of the queue, all 0
 *
 * May sleep.
 *
 * Return: 0, or -ENOMEM. The buckets are for kvfree().
 */
int sbrm_sparse_init(struct sbrm_sparse *sparse)
{
	sparse->credit = SBRM_SPARSE_CREDIT;
	sparse->buckets = kvcalloc(SBRM_BUCKETS, sizeof(*sparse->buckets),
				   GFP_KERNEL);
	return sparse->buckets ? 0 : -ENOMEM;
}

/**
 * sbrm_sparse_reset() - all packets are gone
 * @sparse: parts of the queue
 */
void sbrm_sparse_reset(struct sbrm_sparse *sparse)
{
	sparse->last = NULL;
	sparse->left = sparse->joined;
	sparse->credit = SBRM_SPARSE_CREDIT;
}

/**
 * sbrm_sparse_start() - from now on the packets of sparse flows leave first
 * @sparse: parts of the queue
 *
 * Nobody knows of which flows the packets are that wait: no bucket may overtake them.
 */
void sbrm_sparse_start(struct sbrm_sparse *sparse)
{
	u32 i;

	for (i = 0; i < SBRM_BUCKETS; i++)
		sparse->buckets[i].last = sparse->joined;
	sparse->bulk = sparse->joined;
}

/**
 * sbrm_sparse_refill() - a packet has left the second part
 * @sparse: parts of the queue
 * @len: length of the packet, bytes
 */
void sbrm_sparse_refill(struct sbrm_sparse *sparse, u32 len)
{
	sparse->credit += min(len, SBRM_SPARSE_CREDIT - sparse->credit);
}

/**
 * sbrm_sparse_overtake() - a packet of a sparse flow comes
 * @sparse: parts of the queue
 * @len: length of the packet, bytes
 * @spare: what it has to leave of the credit, bytes
 *
 * Return: true if it may leave before the packets of the second part.
 */
bool sbrm_sparse_overtake(struct sbrm_sparse *sparse, u32 len, u32 spare)
{
	if (sparse->left == sparse->joined)
		return true;
	/*
	 * All that wait are of sparse flows, too, and came first. If half of the link went
	 * to those that come, 1000 flows at 10 Mb/s would have round trips of 0.5 and of
	 * 2 s by turns.
	 */
	if ((s32)(sparse->left - sparse->bulk) >= 0) {
		/* It must not seem to be one that will come, 2^31 packets later. */
		sparse->bulk = sparse->left;
		return false;
	}
	if (sparse->credit < spare || sparse->credit - spare < len)
		return false;

	sparse->credit -= len;
	return true;
}
