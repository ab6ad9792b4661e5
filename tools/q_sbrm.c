// SPDX-License-Identifier: GPL-2.0
/*
 * tc plugin for the qdisc sbrm, see tc-sbrm(8).
 *
 * The words of the command line become the attributes of pkt_sbrm.h, and a
 * dump becomes the same words, so that what "tc qdisc show" prints can be given
 * to "tc qdisc add" again. A flag is sent only if a word named it, so that "tc qdisc
 * change" does not change other flags.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pkt_sbrm.h"
#include "tc_plugin.h"

#define KIND	"sbrm"
#include "tc_words.h"

/* Largest message, bytes: this plugin needs less than 300. */
#define MSG_MAX	1024

static const char * const law_names[] = {
	[SBRM_LAW_SBRM] = "sbrm",
	[SBRM_LAW_REM_PC1] = "rem-pc1",
	[SBRM_LAW_REM_PC2] = "rem-pc2",
	[SBRM_LAW_REM_PC3] = "rem-pc3",
	[SBRM_LAW_VQM] = "vqm",
	[SBRM_LAW_DELAY] = "delay",
	[SBRM_LAW_ALPHA] = "alpha",
};

static const char * const feedback_names[] = {
	[SBRM_FEEDBACK_MARK] = "mark",
	[SBRM_FEEDBACK_PRICE] = "price",
	[SBRM_FEEDBACK_FOUR_BIT] = "four-bit",
	[SBRM_FEEDBACK_TWO_BIT] = "two-bit",
};

/* Options that are decimal numbers, sent as units of one / @one. */
static const struct decimal {
	const char *option, *takes;
	__u64 one, least, most;
} gamma_decimal = {
	"gamma", "auto or a decimal number from 2e-15 to 1",
	SBRM_GAMMA_ONE, 1, SBRM_GAMMA_ONE,
}, phi_decimal = {
	"phi", "a decimal number above 1 and at most 16",
	SBRM_PHI_ONE, SBRM_PHI_ONE + 1, SBRM_PHI_MAX,
}, alpha_decimal = {
	"alpha", "a decimal number from 6e-8 to 16",
	SBRM_ALPHA_ONE, 1, SBRM_ALPHA_MAX,
}, delta_decimal = {
	"delta", "a decimal number from 0.001 to 1",
	SBRM_PHI_ONE, SBRM_DELTA_MIN, SBRM_PHI_ONE,
}, scale_decimal = {
	"scale", "a decimal number from 0.01 to 1",
	SBRM_PHI_ONE, SBRM_SCALE_MIN, SBRM_PHI_ONE,
}, coupling_decimal = {
	"coupling", "a decimal number from 0.01 to 1000",
	SBRM_COUPLING_ONE, SBRM_COUPLING_MIN, SBRM_COUPLING_MAX,
};

static const struct flag_word flag_words[] = {
	{ "packets", SBRM_F_BYTES, false },
	{ "bytes", SBRM_F_BYTES, true },
	{ "ecn", SBRM_F_ECN, true },
	{ "drop", SBRM_F_ECN, false },
	{ "noecn", SBRM_F_ECN, false },
	{ "nodrop", SBRM_F_NODROP, true },
	{ "price-drop", SBRM_F_PRICE_DROP, true },
	{ "coupled", SBRM_F_PRICE_DROP, false },
	{ "l4s-ect", SBRM_F_L4S_ECT, true },
	{ "any-ect", SBRM_F_L4S_ECT, false },
	{ "split-gso", SBRM_F_SPLIT_GSO, true },
	{ "no-split-gso", SBRM_F_SPLIT_GSO, false },
	{ "dither", SBRM_F_DITHER, true },
	{ "no-dither", SBRM_F_DITHER, false },
	{ "sparse", SBRM_F_SPARSE, true },
	{ "no-sparse", SBRM_F_SPARSE, false },
};

/* The options of a command line. */
struct request {
	/* words, NULL: absent */
	const char *law, *feedback, *limit, *target, *gamma, *phi, *alpha;
	const char *rate, *avpkt, *interval, *delta, *scale, *coupling, *small;
	const char *high, *low, *goal;
	struct nla_bitfield32 flags;
	bool reset_stats;
};

static void explain(void)
{
	fputs("Usage: ... sbrm [ mark LAW ]\n"
	      "                [ feedback mark | price | four-bit | two-bit ]\n"
	      "                [ limit N ] [ target N|TIME ] [ gamma auto|NUMBER ]\n"
	      "                [ phi NUMBER ] [ alpha NUMBER ]\n"
	      "                [ rate RATE ] [ avpkt BYTES ] [ interval TIME ]\n"
	      "                [ delta NUMBER ] [ scale NUMBER ]\n"
	      "                [ high N ] [ low N ] [ goal N ]\n"
	      "                [ packets | bytes ] [ ecn | drop ]\n"
	      "                [ coupled | price-drop | nodrop ]\n"
	      "                [ coupling NUMBER ] [ small BYTES ]\n"
	      "                [ any-ect | l4s-ect ]\n"
	      "                [ split-gso | no-split-gso ] [ dither | no-dither ]\n"
	      "                [ sparse | no-sparse ] [ reset-stats ]\n"
	      "\n"
	      "mark      law of the price: delay | sbrm | rem-pc1 | rem-pc2 | rem-pc3 |\n"
	      "          vqm | alpha (delay; sbrm if a target in packets or bytes, or\n"
	      "          gamma, is given)\n"
	      "          delay: follows delay over target, at any rate of the link\n"
	      "          sbrm: gamma [backlog - target]+\n"
	      "          rem-pc2: gamma ln(phi) [backlog - target]+\n"
	      "          rem-pc1: gamma ln(phi) times the sum of [input - rate]\n"
	      "          rem-pc3: the same with alpha [backlog - target] added\n"
	      "          vqm: 1 after an overflow of a virtual queue, until it is empty\n"
	      "          alpha: two bits for second-order rate control\n"
	      "feedback  mark: mark packets with probability 1 - exp(-price) (default)\n"
	      "          price: add the price to the IPv4 identification\n"
	      "          four-bit: four marks in this field, each with another phi\n"
	      "          two-bit: the bits of mark alpha in this field\n"
	      "limit     size of the queue in packets; with bytes a size such as 300kb\n"
	      "target    of delay: delay of the queue, 10us to 1s (3ms)\n"
	      "          of sbrm, rem-pc2 and rem-pc3: backlog up to which nothing is\n"
	      "          marked, in the unit of the limit and less than the limit (10)\n"
	      "gamma     price per packet or byte above target, above 0 and at most 1;\n"
	      "          auto: 99 % are marked at the limit; rem-pc1, rem-pc3: (0.001)\n"
	      "phi       base of the prices of the rem laws, above 1 to 16 (1.06)\n"
	      "alpha     weight of the backlog in rem-pc3, above 0 to 16 (0.1)\n"
	      "rate      rate of the link; rem-pc1, rem-pc3 and vqm need it\n"
	      "avpkt     bytes that count as one packet of rate and input (1000)\n"
	      "interval  time between updates of rem-pc1 and rem-pc3, to 1s (1ms)\n"
	      "delta     weight of the last interval in the input, 0.001 to 1 (0.9)\n"
	      "scale     virtual queue relative to the real one, 0.01 to 1 (0.9)\n"
	      "high      backlog above which alpha sets its first bit (50)\n"
	      "low       backlog at which alpha clears its bits (half of high)\n"
	      "goal      backlog above which alpha sets its second bit (300)\n"
	      "ecn       mark ECN-capable packets (default); drop (or noecn): mark none,\n"
	      "          and treat all packets as not ECN-capable\n"
	      "coupled   drop packets that are not ECN-capable with the probability\n"
	      "          (price / coupling)^2, except SYNs, pure ACKs and small ones;\n"
	      "          price-drop: drop all of them with the probability of a mark;\n"
	      "          nodrop: drop none\n"
	      "coupling  see above; a loss-based flow then has the share of a sender with\n"
	      "          wtp 1.22 coupling / RTT; 0.01 to 1000 (0.5 with delay, else 2)\n"
	      "small     bytes up to which a packet is small, 0 to 65535 (256)\n"
	      "any-ect   mark ECT(0) and ECT(1) for the price; l4s-ect: only ECT(1),\n"
	      "          and ECT(0) with the probability of coupled\n"
	      "split-gso split super-packets into segments; no-split-gso: do not\n"
	      "dither    distribute the marks of each flow evenly; no-dither: draw for\n"
	      "          each packet independently\n"
	      "sparse    packets of flows that send little leave first (default with\n"
	      "          delay); no-sparse: all leave in the order of their arrival\n"
	      "reset-stats  set the statistics to zero\n",
	      stderr);
}

/*
 * Decimal to units, rounded to nearest; 0 if the word is no number in the
 * range. The product is exact: it only moves the exponent.
 */
static __u64 decimal_from_word(const struct decimal *decimal, const char *word)
{
	long double value;
	__u64 units;
	char *end;

	if (!*word || strspn(word, "0123456789.eE+-") != strlen(word))
		return 0;

	value = strtold(word, &end);
	if (*end || !(value > 0 && value * decimal->one <= decimal->most))
		return 0;

	units = value * decimal->one + 0.5L;
	return units >= decimal->least ? units : 0;
}

static int parse_decimal(const struct decimal *decimal, const char *word,
			 __u64 *units)
{
	*units = decimal_from_word(decimal, word);
	if (!*units)
		return bad_value(decimal->option, decimal->takes, word);
	return 0;
}

/* The same for attributes of 32 bits, in which U32_MAX means 1. */
static int parse_decimal32(const struct decimal *decimal, const char *word,
			   __u32 *value)
{
	__u64 units;

	if (parse_decimal(decimal, word, &units))
		return -1;
	*value = units > UINT32_MAX ? UINT32_MAX : units;
	return 0;
}

static int parse_gamma(const char *word, __u64 *gamma)
{
	*gamma = 0;
	if (strcmp(word, "auto") == 0)
		return 0;

	return parse_decimal(&gamma_decimal, word, gamma);
}

static int parse_amount(const char *option, const char *word, bool bytes,
			__u32 least, __u32 *value)
{
	char takes[80];

	if (bytes ? bytes_from_word(word, value) :
		    packets_from_word(word, value))
		if (*value >= least)
			return 0;

	if (!bytes && bytes_from_word(word, value) &&
	    !is_digit(last_char(word)) && last_char(word) != '.') {
		fprintf(stderr,
			"sbrm: %s \"%s\" is a size, and sizes need the word bytes on the line.\n",
			option, word);
		return -1;
	}

	snprintf(takes, sizeof(takes), bytes ?
		 "a size from %ub up, such as 300kb" :
		 "a whole number of packets from %u up", least);
	return bad_value(option, takes, word);
}

static int parse_rate(const char *word, __u64 *rate)
{
	if (is_digit(*word) && get_rate64(rate, word) == 0 && *rate &&
	    *rate <= SBRM_RATE_MAX)
		return 0;

	return bad_value("rate", "a rate from 8bit to 1.09tbit, such as 96mbit",
			 word);
}

static int parse_avpkt(const char *word, __u32 *avpkt)
{
	if (bytes_from_word(word, avpkt) && *avpkt && *avpkt <= SBRM_AVPKT_MAX)
		return 0;

	return bad_value("avpkt", "a size from 1b to 65535b", word);
}

static int parse_small(const char *word, __u32 *small)
{
	if (bytes_from_word(word, small) && *small <= SBRM_SMALL_MAX)
		return 0;

	return bad_value("small", "a size from 0b to 65535b", word);
}

/* us, from @least to a second */
static bool time_from_word(const char *word, __u32 least, __u32 *value)
{
	/* get_time() does not notice a time that does not fit into 32 bits. */
	char *unit;
	double us = strtod(word, &unit);

	if (*unit == 's' || *unit == 'S')
		us *= 1000000;
	else if (*unit == 'm' || *unit == 'M')
		us *= 1000;
	return is_digit(*word) && us <= SBRM_INTERVAL_MAX &&
	       get_time(value, word) == 0 && *value >= least;
}

static int parse_interval(const char *word, __u32 *interval)
{
	if (time_from_word(word, 1, interval))
		return 0;

	return bad_value("interval", "a time from 1us to 1s, such as 1ms",
			 word);
}

/* A target such as "3ms" has a unit of time: it is for mark delay. */
static bool says_time(const char *word)
{
	return is_digit(*word) && strpbrk(word, "sS");
}

static int parse_delay(const char *word, __u32 *delay)
{
	if (says_time(word) && time_from_word(word, SBRM_DELAY_MIN, delay))
		return 0;

	return bad_value("target", "a time from 10us to 1s, such as 3ms", word);
}

/* A target: packets or bytes, or with mark delay a time. */
static int parse_target(const char *word, const char *law, bool bytes,
			__u32 *target, __u32 *delay)
{
	if (says_time(word) ||
	    (law && !strcmp(law, law_names[SBRM_LAW_DELAY])))
		return parse_delay(word, delay);

	return parse_amount("target", word, bytes, 0, target);
}

/*
 * coupled, price-drop and nodrop are one choice, of two bits. "ecn" and "drop"
 * alone choose the first of them, and "drop" leaves no ECT to tell apart.
 */
static int settle_classic(struct nla_bitfield32 *flags)
{
	const __u32 choice = SBRM_F_NODROP | SBRM_F_PRICE_DROP;

	if ((flags->selector & SBRM_F_ECN) && !(flags->value & SBRM_F_ECN)) {
		if (flags->value & SBRM_F_NODROP) {
			fputs("sbrm: nodrop needs ecn, and cannot be used with drop.\n",
			      stderr);
			return -1;
		}
		if (flags->value & SBRM_F_L4S_ECT) {
			fputs("sbrm: l4s-ect needs ecn, and cannot be used with drop.\n",
			      stderr);
			return -1;
		}
		flags->selector |= SBRM_F_L4S_ECT;
	}
	if ((flags->selector & choice) == choice) {
		fprintf(stderr, "sbrm: nodrop conflicts with %s.\n",
			flags->value & SBRM_F_PRICE_DROP ? "price-drop" :
							   "coupled");
		return -1;
	}
	if (flags->selector & (choice | SBRM_F_ECN))
		flags->selector |= choice;
	return 0;
}

/*
 * Parse an option and its value; returns the number of words, or -1. The value stays a
 * word, because the unit of an amount may come later on the line.
 */
static int parse_option(int argc, char **argv, struct request *req)
{
	const struct {
		const char *option, *takes;
		const char **value;
	} options[] = {
		{ "mark", "the name of a price law", &req->law },
		{ "feedback", "mark, price, four-bit or two-bit",
		  &req->feedback },
		{ "limit", "a number of packets or a size", &req->limit },
		{ "target", "a number of packets, a size or a time",
		  &req->target },
		{ "gamma", "auto or a number", &req->gamma },
		{ "phi", "a number", &req->phi },
		{ "alpha", "a number", &req->alpha },
		{ "rate", "a rate", &req->rate },
		{ "avpkt", "a size", &req->avpkt },
		{ "interval", "a time", &req->interval },
		{ "delta", "a number", &req->delta },
		{ "scale", "a number", &req->scale },
		{ "coupling", "a number", &req->coupling },
		{ "small", "a size", &req->small },
		{ "high", "a number of packets or a size", &req->high },
		{ "low", "a number of packets or a size", &req->low },
		{ "goal", "a number of packets or a size", &req->goal },
	}, *o, *end = options + ARRAY_SIZE(options);

	for (o = options; o < end && strcmp(*argv, o->option); o++)
		;
	if (o == end) {
		fprintf(stderr,
			"sbrm: unknown word \"%s\", try \"... sbrm help\".\n",
			*argv);
		return -1;
	}
	if (*o->value) {
		fprintf(stderr, "sbrm: %s is given twice.\n", o->option);
		return -1;
	}
	if (argc < 2)
		return bad_value(o->option, o->takes, NULL);
	*o->value = argv[1];

	/* As tc shows it: "gamma 0.00465 (auto)". */
	if (o->value == &req->gamma && argc > 2 &&
	    strcmp(argv[2], "(auto)") == 0) {
		req->gamma = "auto";
		return 3;
	}
	return 2;
}

static int parse_words(int argc, char **argv, struct request *req)
{
	int taken;

	for (; argc > 0; argc -= taken, argv += taken) {
		if (strcmp(*argv, "help") == 0) {
			explain();
			return -1;
		}
		if (strcmp(*argv, "reset-stats") == 0) {
			req->reset_stats = true;
			taken = 1;
			continue;
		}
		taken = parse_flag(flag_words, ARRAY_SIZE(flag_words), *argv,
				   &req->flags);
		if (!taken)
			taken = parse_option(argc, argv, req);
		if (taken < 0)
			return -1;
	}

	return settle_classic(&req->flags);
}

/* Values of the words that were given. */
struct values {
	__u32 law, feedback, limit, target, alpha, avpkt, interval, delta;
	__u32 scale, coupling, small, delay, high, low, goal;
	__u64 gamma, phi, rate;
};

static int parse_values(const struct request *req, struct values *v)
{
	bool bytes = req->flags.value & SBRM_F_BYTES;

	if ((req->law &&
	     parse_name("mark",
			"the name of a price law: sbrm, rem-pc1, rem-pc2, rem-pc3, vqm, delay or alpha",
			law_names, ARRAY_SIZE(law_names), req->law, &v->law)) ||
	    (req->feedback &&
	     parse_name("feedback", "mark, price, four-bit or two-bit",
			feedback_names, ARRAY_SIZE(feedback_names),
			req->feedback, &v->feedback)) ||
	    (req->limit &&
	     parse_amount("limit", req->limit, bytes, 1, &v->limit)) ||
	    (req->target &&
	     parse_target(req->target, req->law, bytes, &v->target,
			  &v->delay)) ||
	    (req->gamma && parse_gamma(req->gamma, &v->gamma)) ||
	    (req->phi && parse_decimal(&phi_decimal, req->phi, &v->phi)) ||
	    (req->alpha &&
	     parse_decimal32(&alpha_decimal, req->alpha, &v->alpha)) ||
	    (req->rate && parse_rate(req->rate, &v->rate)) ||
	    (req->avpkt && parse_avpkt(req->avpkt, &v->avpkt)) ||
	    (req->interval && parse_interval(req->interval, &v->interval)) ||
	    (req->delta &&
	     parse_decimal32(&delta_decimal, req->delta, &v->delta)) ||
	    (req->scale &&
	     parse_decimal32(&scale_decimal, req->scale, &v->scale)) ||
	    (req->coupling &&
	     parse_decimal32(&coupling_decimal, req->coupling,
			     &v->coupling)) ||
	    (req->small && parse_small(req->small, &v->small)) ||
	    (req->high &&
	     parse_amount("high", req->high, bytes, 1, &v->high)) ||
	    (req->low && parse_amount("low", req->low, bytes, 0, &v->low)) ||
	    (req->goal &&
	     parse_amount("goal", req->goal, bytes, 1, &v->goal)))
		return -1;

	if (req->limit && req->target && !v->delay &&
	    v->target >= v->limit) {
		fprintf(stderr,
			"sbrm: target must be below the limit, not %s with limit %s.\n",
			req->target, req->limit);
		return -1;
	}
	return 0;
}

static void add_attributes(struct nlmsghdr *n, const struct request *req,
			   const struct values *v)
{
	if (req->law)
		addattr32(n, MSG_MAX, TCA_SBRM_LAW, v->law);
	if (req->feedback)
		addattr32(n, MSG_MAX, TCA_SBRM_FEEDBACK, v->feedback);
	if (req->limit)
		addattr32(n, MSG_MAX, TCA_SBRM_LIMIT, v->limit);
	if (req->target && v->delay)
		addattr32(n, MSG_MAX, TCA_SBRM_DELAY, v->delay);
	else if (req->target)
		addattr32(n, MSG_MAX, TCA_SBRM_TARGET, v->target);
	if (req->gamma)
		addattr64(n, MSG_MAX, TCA_SBRM_GAMMA, v->gamma);
	if (req->phi)
		addattr64(n, MSG_MAX, TCA_SBRM_PHI, v->phi);
	if (req->alpha)
		addattr32(n, MSG_MAX, TCA_SBRM_ALPHA, v->alpha);
	if (req->rate)
		addattr64(n, MSG_MAX, TCA_SBRM_RATE, v->rate);
	if (req->avpkt)
		addattr32(n, MSG_MAX, TCA_SBRM_AVPKT, v->avpkt);
	if (req->interval)
		addattr32(n, MSG_MAX, TCA_SBRM_INTERVAL, v->interval);
	if (req->delta)
		addattr32(n, MSG_MAX, TCA_SBRM_DELTA, v->delta);
	if (req->scale)
		addattr32(n, MSG_MAX, TCA_SBRM_SCALE, v->scale);
	if (req->coupling)
		addattr32(n, MSG_MAX, TCA_SBRM_COUPLING, v->coupling);
	if (req->small)
		addattr32(n, MSG_MAX, TCA_SBRM_SMALL, v->small);
	if (req->high)
		addattr32(n, MSG_MAX, TCA_SBRM_HIGH, v->high);
	if (req->low)
		addattr32(n, MSG_MAX, TCA_SBRM_LOW, v->low);
	if (req->goal)
		addattr32(n, MSG_MAX, TCA_SBRM_GOAL, v->goal);
	if (req->flags.selector)
		addattr_l(n, MSG_MAX, TCA_SBRM_FLAGS, &req->flags,
			  sizeof(req->flags));
	if (req->reset_stats)
		addattr(n, MSG_MAX, TCA_SBRM_RESET_STATS);
}

static int sbrm_parse_opt(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev)
{
	struct request req = {};
	struct values values = {};
	struct rtattr *nest;

	(void)qu;
	(void)dev;

	if (parse_words(argc, argv, &req))
		return -1;

	if (says_packets(req.limit) || says_packets(req.target) ||
	    says_packets(req.high) || says_packets(req.low) ||
	    says_packets(req.goal))
		req.flags.selector |= SBRM_F_BYTES;
	if (parse_values(&req, &values))
		return -1;

	nest = addattr_nest(n, MSG_MAX, TCA_OPTIONS | NLA_F_NESTED);
	add_attributes(n, &req, &values);
	addattr_nest_end(n, nest);
	return 0;
}

/* Print as many digits as are needed to read the same number again. */
static void print_decimal(const struct decimal *decimal, __u64 units,
			  bool is_auto)
{
	double value;
	char word[32];
	int digits;

	/* U32_MAX means 1. */
	if (units == UINT32_MAX && decimal->most == SBRM_PHI_ONE)
		units = SBRM_PHI_ONE;
	value = (double)units / decimal->one;
	for (digits = 3; digits <= 17; digits++) {
		snprintf(word, sizeof(word), "%.*g", digits, value);
		if (is_auto || decimal_from_word(decimal, word) == units)
			break;
	}

	print_float(PRINT_JSON, decimal->option, NULL, value);
	print_string(PRINT_FP, NULL, "%s ", decimal->option);
	print_string(PRINT_FP, NULL, "%s ", word);
}

static void print_gamma(__u64 units, bool is_auto)
{
	print_decimal(&gamma_decimal, units, is_auto);
	print_bool(PRINT_JSON, "gamma_auto", NULL, is_auto);
	if (is_auto)
		print_string(PRINT_FP, NULL, "(auto) ", NULL);
}

/* Print a rate in the largest unit that is exact; tc would round. JSON: bytes/s. */
static void print_exact_rate(__u64 rate)
{
	static const char * const fmt[] = {
		"rate %llubit ", "rate %lluKbit ", "rate %lluMbit ",
		"rate %lluGbit ",
	};
	unsigned long long bits = rate * 8;
	int i;

	for (i = 0; i < 3 && bits % 1000 == 0; i++)
		bits /= 1000;

	print_lluint(PRINT_JSON, "rate", NULL, rate);
	print_lluint(PRINT_FP, NULL, fmt[i], bits);
}

/* JSON: us */
static void print_us(const char *option, const char *key, __u32 time)
{
	print_uint(PRINT_JSON, key, NULL, time);
	print_string(PRINT_FP, NULL, "%s ", option);
	if (time % 1000)
		print_uint(PRINT_FP, NULL, "%uus ", time);
	else
		print_uint(PRINT_FP, NULL, "%ums ", time / 1000);
}

/* A dump has only the options of the present law. */
static void print_of_law(struct rtattr *tb[], bool bytes)
{
	__u64 wide;
	__u32 value;

	if (get_attr(tb[TCA_SBRM_PHI], &wide, sizeof(wide)))
		print_decimal(&phi_decimal, wide, false);
	if (get_attr(tb[TCA_SBRM_ALPHA], &value, sizeof(value)))
		print_decimal(&alpha_decimal, value, false);
	if (get_attr(tb[TCA_SBRM_SCALE], &value, sizeof(value)))
		print_decimal(&scale_decimal, value, false);
	if (get_attr(tb[TCA_SBRM_RATE], &wide, sizeof(wide)))
		print_exact_rate(wide);
	if (get_attr(tb[TCA_SBRM_AVPKT], &value, sizeof(value)))
		print_uint(PRINT_ANY, "avpkt", "avpkt %ub ", value);
	if (get_attr(tb[TCA_SBRM_INTERVAL], &value, sizeof(value)))
		print_us("interval", "interval", value);
	if (get_attr(tb[TCA_SBRM_DELTA], &value, sizeof(value)))
		print_decimal(&delta_decimal, value, false);
	if (get_attr(tb[TCA_SBRM_DELAY], &value, sizeof(value)))
		print_us("target", "target_us", value);
	if (get_attr(tb[TCA_SBRM_HIGH], &value, sizeof(value)))
		print_amount("high", value, bytes);
	if (get_attr(tb[TCA_SBRM_LOW], &value, sizeof(value)))
		print_amount("low", value, bytes);
	if (get_attr(tb[TCA_SBRM_GOAL], &value, sizeof(value)))
		print_amount("goal", value, bytes);
}

/* Options for packets that are not marked for the price. */
static void print_classic(__u32 flags, struct rtattr *tb[])
{
	bool ecn = flags & SBRM_F_ECN;
	bool nodrop = flags & SBRM_F_NODROP;
	bool price_drop = flags & SBRM_F_PRICE_DROP;
	bool l4s_ect = flags & SBRM_F_L4S_ECT;
	__u32 value;

	print_bool(PRINT_JSON, "ecn", NULL, ecn);
	print_bool(PRINT_JSON, "nodrop", NULL, nodrop);
	print_bool(PRINT_JSON, "price_drop", NULL, price_drop);
	print_bool(PRINT_JSON, "l4s_ect", NULL, l4s_ect);

	print_string(PRINT_FP, NULL, "%s ", ecn ? "ecn" : "drop");
	if (nodrop || price_drop) {
		print_string(PRINT_FP, NULL, "%s ",
			     nodrop ? "nodrop" : "price-drop");
		return;
	}
	if (get_attr(tb[TCA_SBRM_COUPLING], &value, sizeof(value)))
		print_decimal(&coupling_decimal, value, false);
	if (get_attr(tb[TCA_SBRM_SMALL], &value, sizeof(value)))
		print_uint(PRINT_ANY, "small", "small %ub ", value);
	if (l4s_ect)
		print_string(PRINT_FP, NULL, "l4s-ect ", NULL);
}

static void print_flags(__u32 flags)
{
	bool split_gso = flags & SBRM_F_SPLIT_GSO;
	bool dither = flags & SBRM_F_DITHER;
	bool sparse = flags & SBRM_F_SPARSE;

	print_bool(PRINT_JSON, "split_gso", NULL, split_gso);
	print_bool(PRINT_JSON, "dither", NULL, dither);
	print_bool(PRINT_JSON, "sparse", NULL, sparse);

	print_string(PRINT_FP, NULL, "%s ",
		     split_gso ? "split-gso" : "no-split-gso");
	print_string(PRINT_FP, NULL, "%s ", dither ? "dither" : "no-dither");
	print_string(PRINT_FP, NULL, "%s ", sparse ? "sparse" : "no-sparse");
}

static int sbrm_print_opt(const struct qdisc_util *qu, FILE *f,
			  struct rtattr *opt)
{
	struct rtattr *tb[TCA_SBRM_MAX + 1];
	struct nla_bitfield32 flags = {};
	bool bytes, have_flags;
	__u32 law = SBRM_LAW_SBRM, value;
	__u64 gamma;

	(void)qu;
	(void)f;

	if (!opt)
		return 0;

	parse_rtattr_nested(tb, TCA_SBRM_MAX, opt);
	have_flags = get_attr(tb[TCA_SBRM_FLAGS], &flags, sizeof(flags));
	bytes = flags.value & SBRM_F_BYTES;

	if (get_attr(tb[TCA_SBRM_LAW], &law, sizeof(law)))
		print_name("law", "mark %s ", law_names, ARRAY_SIZE(law_names),
			   law);
	if (get_attr(tb[TCA_SBRM_FEEDBACK], &value, sizeof(value)))
		print_name("feedback", "feedback %s ", feedback_names,
			   ARRAY_SIZE(feedback_names), value);
	if (get_attr(tb[TCA_SBRM_LIMIT], &value, sizeof(value)))
		print_amount("limit", value, bytes);
	if (law != SBRM_LAW_REM_PC1 && law < SBRM_LAW_VQM &&
	    get_attr(tb[TCA_SBRM_TARGET], &value, sizeof(value)))
		print_amount("target", value, bytes);
	if (have_flags)
		print_string(PRINT_JSON, "unit", NULL,
			     bytes ? "bytes" : "packets");
	if (bytes)
		print_string(PRINT_FP, NULL, "bytes ", NULL);
	if (law < SBRM_LAW_VQM &&
	    get_attr(tb[TCA_SBRM_GAMMA], &gamma, sizeof(gamma)))
		print_gamma(gamma, flags.value & SBRM_F_GAMMA_AUTO);
	print_of_law(tb, bytes);
	if (have_flags) {
		print_classic(flags.value, tb);
		print_flags(flags.value);
	}
	return 0;
}

/* Counters of packets that carry a price; not printed with marks. */
static void print_carried(const struct tc_sbrm_xstats *st)
{
	enum output_type type = st->carried || st->uncarried ? PRINT_ANY :
							       PRINT_JSON;

	if (type == PRINT_ANY)
		print_nl();
	print_lluint(type, "carried", " carried %llu", st->carried);
	print_lluint(type, "uncarried", " uncarried %llu", st->uncarried);
	print_lluint(type, "saturated", " saturated %llu", st->saturated);
}

/* Counters of packets that are not marked for the price, if they are not 0. */
static void print_coupled(const struct tc_sbrm_xstats *st)
{
	static const char * const overloads[] = {
		"none", "paying", "exempt", "all",
	};
	enum output_type type = PRINT_JSON;

	if (st->coupled_drops || st->coupled_marks || st->spared ||
	    st->overload_drops || st->overload)
		type = PRINT_ANY;

	if (type == PRINT_ANY)
		print_nl();
	print_lluint(type, "coupled_drops", " coupled_drops %llu",
		     st->coupled_drops);
	print_lluint(type, "coupled_marks", " coupled_marks %llu",
		     st->coupled_marks);
	print_lluint(type, "spared", " spared %llu", st->spared);
	print_lluint(type, "overload_drops", " overload_drops %llu",
		     st->overload_drops);
	print_float(type, "coupled_prob", " coupled_prob %g",
		    st->coupled_prob / 4294967296.0);
	print_string(st->overload ? PRINT_ANY : PRINT_JSON, "overload",
		     " overload %s", overloads[st->overload & 3]);
}

/* Cycles of second-order rate control, if one has ended. */
static void print_cycles(const struct tc_sbrm_xstats *st)
{
	enum output_type type = st->cycles ? PRINT_ANY : PRINT_JSON;

	if (st->cycles)
		print_nl();
	print_lluint(type, "cycles", " cycles %llu", st->cycles);
	print_lluint(type, "beyond", " beyond %llu", st->beyond);
	print_uint(type, "cycle_max", " cycle_max %u", st->cycle_max);
	print_uint(PRINT_JSON, "bits", NULL, st->bits);
}

/* JSON: bytes/s and bytes */
static void print_xstats_of_law(const struct tc_sbrm_xstats *st)
{
	if (st->input || st->virtual_backlog)
		print_nl();
	print_lluint(PRINT_JSON, "input", NULL, st->input);
	if (st->input)
		print_float(PRINT_FP, NULL, " input %gMbit",
			    st->input * 8 / 1e6);
	print_lluint(st->virtual_backlog ? PRINT_ANY : PRINT_JSON,
		     "virtual_backlog", " virtual backlog %llub",
		     st->virtual_backlog);
	if (st->service_rate)
		print_nl();
	print_lluint(PRINT_JSON, "service_rate", NULL, st->service_rate);
	if (st->service_rate)
		print_float(PRINT_FP, NULL, " service rate %gMbit",
			    st->service_rate * 8 / 1e6);
	print_float(st->service_rate ? PRINT_ANY : PRINT_JSON, "idle",
		    " idle %g", st->idle / 4294967296.0);
	print_cycles(st);
}

/* Number of times that a flow took the account of another one, if not 0. */
static void print_collisions(const struct tc_sbrm_xstats *st)
{
	enum output_type type = st->collisions ? PRINT_ANY : PRINT_JSON;

	if (st->collisions)
		print_nl();
	print_uint(type, "collisions", " collisions %u", st->collisions);
}

/* Packets of sparse flows that left before others, if not 0. */
static void print_sparse(const struct tc_sbrm_xstats *st)
{
	enum output_type type = st->sparse ? PRINT_ANY : PRINT_JSON;

	if (st->sparse)
		print_nl();
	print_lluint(type, "sparse", " sparse %llu", st->sparse);
}

/* Statistics that an older kernel does not send are 0. */
static int sbrm_print_xstats(const struct qdisc_util *qu, FILE *f,
			     struct rtattr *xstats)
{
	struct tc_sbrm_xstats st = {};
	double mean = 0, price, prob;
	size_t len;

	(void)qu;
	(void)f;

	if (!xstats)
		return 0;

	len = RTA_PAYLOAD(xstats);
	memcpy(&st, RTA_DATA(xstats), len < sizeof(st) ? len : sizeof(st));

	if (st.packets)
		mean = (double)st.backlog_sum / st.packets;
	price = st.price / 4294967296.0;
	prob = st.prob / 4294967296.0;	/* UINT32_MAX shows as 1 */

	/* tc has a field "packets" in the same object: the packets that were sent. */
	print_lluint(PRINT_JSON, "dequeued", NULL, st.packets);
	print_lluint(PRINT_ANY, "marks", " marks %llu", st.marks);
	print_lluint(PRINT_ANY, "price_drops", " price_drops %llu",
		     st.price_drops);
	print_lluint(PRINT_ANY, "full_drops", " full_drops %llu",
		     st.full_drops);
	print_nl();
	print_float(PRINT_ANY, "backlog_mean", " backlog mean %.1f", mean);
	print_uint(PRINT_ANY, "backlog_max", " max %u", st.backlog_max);
	print_lluint(PRINT_JSON, "backlog_sum", NULL, st.backlog_sum);
	print_float(PRINT_ANY, "price", "  price %g", price);
	print_float(PRINT_ANY, "prob", " prob %g", prob);
	print_coupled(&st);
	print_carried(&st);
	print_xstats_of_law(&st);
	print_collisions(&st);
	print_sparse(&st);
	return 0;
}

struct qdisc_util sbrm_qdisc_util = {
	.id = "sbrm",
	.parse_qopt = sbrm_parse_opt,
	.print_qopt = sbrm_print_opt,
	.print_xstats = sbrm_print_xstats,
};
