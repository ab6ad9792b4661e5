// SPDX-License-Identifier: GPL-2.0
/*
 * How the price comes back from the peer (enum sbrm_echo), and how it goes back
 * to the peer from here
 *
 * Marks come back one by one from a peer that runs this module or dctcp, which is
 * found out by watching; by AccECN, which the kernel negotiates; or not at all.
 * The price field comes back where the peer echoes it, see sbrm_carrier.c. Where
 * neither does, the connection is TCP/RM.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <net/tcp.h>

#include "sbrm.h"
#include "tollway_carrier.h"

/* Odds of e^12 convict a peer of repeating ECE, see sbrm_marks_watch(). */
#define SBRM_LATCHED_ODDS	12

/*
 * So many segments without an echo of the price field: there is none. With
 * fewer, a spell in which ACKs find the socket owned by a process makes the
 * connection TCP/RM. With more, a window that no price holds back grows for
 * longer: 32 segments are about two round trips of a connection that begins.
 */
#define SBRM_SILENT_MAX	32

/* Without a price field: TCP/RM. */
static void sbrm_echo_without_field(struct sock *sk, struct sbrm *ca,
				    enum sbrm_counter why)
{
	ca->estimator = SBRM_ESTIMATOR_LOG;
	ca->source = SBRM_SOURCE_RM;
	sbrm_count(sock_net(sk), why);
}

/**
 * sbrm_echo_begin() - a connection begins: can its price come back?
 * @sk: socket
 * @ca: its private area; the source becomes TCP/RM where it cannot
 *
 * Estimators from %SBRM_ESTIMATOR_FOUR_BIT on need the price field: only IPv4 has
 * one, and only where no segment is signed.
 */
void sbrm_echo_begin(struct sock *sk, struct sbrm *ca)
{
	if (ca->estimator < SBRM_ESTIMATOR_FOUR_BIT)
		return;

	if (!tollway_carrier_has_field(sk)) {
		sbrm_echo_without_field(sk, ca, SBRM_COUNT_NO_IPV4);
		pr_info_once("IPv6 has no field for prices: cp over IPv6 uses TCP/RM\n");
	} else if (compat_tcp_is_signed(tcp_sk(sk))) {
		sbrm_echo_without_field(sk, ca, SBRM_COUNT_SIGNED);
		pr_info_once("signed segments (MD5, AO) cannot return prices: such connections use TCP/RM\n");
	} else {
		ca->carrier = 1;
		sbrm_carrier_use(sk);
	}
}

/**
 * sbrm_echo_settle() - does the connection have ECN, and who echoes the marks?
 * @sk: socket
 * @ca: its private area
 *
 * Before the answer to our SYN, init() runs only where setsockopt() selects us
 * then. ECN that the SYN asked for is not settled yet; the first ACK, which is
 * that of the SYN, settles it, before any data can leave.
 *
 * Return: false if ECN was not negotiated.
 */
bool sbrm_echo_settle(const struct sock *sk, struct sbrm *ca)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	bool marks = !ca->carrier && ca->source != SBRM_SOURCE_RM;

	ca->unsettled = 0;
	if (compat_tcp_ecn_accurate(tp)) {
		if (marks)
			ca->echo = SBRM_ECHO_ACCECN;
		return true;
	}
	if (compat_tcp_ecn_negotiated(tp))
		return true;

	if (marks) {
		ca->echo = SBRM_ECHO_NONE;
		sbrm_count(sock_net(sk), SBRM_COUNT_NO_ECN);
		pr_info_once("ECN was not negotiated with a peer: such connections use TCP/RM and respond to losses only\n");
	}
	return false;
}

/**
 * sbrm_marks_watch() - find out whether the peer echoes each mark by itself
 * @sk: socket
 * @ca: connection
 * @ack: what the ACK brought
 *
 * At the first ECE the stack queues CWR for its next packet, which begins at
 * snd_nxt of that moment. Until the peer has got that packet, an RFC 3168
 * receiver sets ECE in every ACK: one ACK without it, for data sent before, is
 * proof that the peer echoes packet by packet, and overrules all else.
 *
 * Without such an ACK, the n ACKs inside of epochs all had ECE. If the peer
 * echoed packet by packet, ACKs outside would look the same: there, one with
 * ECE opens each of E epochs and k have none, so that the chance of n in a row
 * is about (1 + k / E)^-n < exp(-n k / (E + k)). Below e^-12 the peer is
 * convicted of latching.
 */
static void sbrm_marks_watch(const struct sock *sk, struct sbrm *ca,
			     const struct sbrm_ack *ack)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if ((ca->echo != SBRM_ECHO_UNKNOWN && ca->echo != SBRM_ECHO_LATCHED) ||
	    ca->source == SBRM_SOURCE_RM)
		return;

	if (ca->epoch && after(tp->snd_una, ca->marks.epoch_end))
		ca->epoch = 0;

	if (ca->epoch) {
		if (!ack->ece) {
			ca->echo = SBRM_ECHO_PACKET;
			return;
		}
		if (ca->marks.latched < U16_MAX)
			ca->marks.latched++;
	} else if (ack->ece) {
		ca->epoch = 1;
		ca->marks.epoch_end = tp->snd_nxt;
		if (ca->marks.epochs < U16_MAX)
			ca->marks.epochs++;
	} else if (ca->marks.epochs && ca->marks.clear < U16_MAX) {
		ca->marks.clear++;
	}

	if (ca->echo == SBRM_ECHO_UNKNOWN && ca->marks.clear &&
	    (u32)ca->marks.latched * ca->marks.clear >=
	    SBRM_LATCHED_ODDS * ((u32)ca->marks.epochs + ca->marks.clear)) {
		ca->echo = SBRM_ECHO_LATCHED;
		ca->in_turn = 0;
		sbrm_count(sock_net(sk), SBRM_COUNT_LATCHED);
		pr_info_once("a peer repeats ECE until CWR (RFC 3168): connections to such peers use TCP/RM\n");
	}
}

/**
 * sbrm_field_watch() - find out whether the peer echoes the price field
 * @sk: socket
 * @ca: connection
 * @acked: segments that the ACK acknowledges
 *
 * Silence makes the connection TCP/RM until the echo is back: it may have
 * been a spell in which every ACK found the socket owned by a process. What may
 * have left before our hooks were there is not judged.
 */
static void sbrm_field_watch(const struct sock *sk, struct sbrm *ca, u32 acked)
{
	if (ca->seen) {
		ca->silent = 0;
		ca->echo = SBRM_ECHO_CARRIER;
		return;
	}
	if (sbrm_carrier_is_early(sk) ||
	    tollway_carrier_is_first(tcp_sk(sk), acked)) {
		ca->silent = 0;
		return;
	}
	ca->silent = min_t(u32, ca->silent + acked, SBRM_SILENT_MAX);
	if (ca->silent < SBRM_SILENT_MAX || ca->echo == SBRM_ECHO_NONE)
		return;

	ca->echo = SBRM_ECHO_NONE;
	sbrm_count(sock_net(sk), SBRM_COUNT_ABSENT);
	pr_info_once("a peer does not echo the price field: connections to such peers use TCP/RM\n");
}

/**
 * sbrm_echo_watch_slow() - find out how the price comes back, if it does
 * @sk: socket
 * @ca: its private area
 * @ack: what the ACK brought
 */
void sbrm_echo_watch_slow(const struct sock *sk, struct sbrm *ca,
			  const struct sbrm_ack *ack)
{
	if (ca->carrier)
		sbrm_field_watch(sk, ca, ack->acked);
	else
		sbrm_marks_watch(sk, ca, ack);
}

static void sbrm_echo_set(struct sock *sk, bool ce)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (ce)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

/**
 * sbrm_echo_receive() - receiver: a packet has come
 * @sk: socket
 * @ce: the packet is marked
 *
 * Let each ACK say whether the packets it acknowledges were marked, RFC 8257 3.2.
 * When that changes while an ACK is held back, send the old one
 * first; also where the stack holds back those of packets that came after a lost
 * one (up to 44 of them), or all of these would be taken for marked.
 */
void sbrm_echo_receive(struct sock *sk, bool ce)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct sbrm *ca = inet_csk_ca(sk);

	if (compat_tcp_ecn_accurate(tcp_sk(sk)))
		return;

	if (ca->rcv_ce != ce) {
		if (icsk->icsk_ack.pending & ICSK_ACK_TIMER ||
		    tcp_sk(sk)->compressed_ack) {
			sbrm_echo_set(sk, ca->rcv_ce);
			compat_tcp_send_ack(sk, ca->rcv_prior_nxt);
		}
		icsk->icsk_ack.pending |= ICSK_ACK_NOW;
	}
	ca->rcv_prior_nxt = tcp_sk(sk)->rcv_nxt;
	ca->rcv_ce = ce;
	sbrm_echo_set(sk, ce);
}
