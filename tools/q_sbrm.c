// SPDX-License-Identifier: GPL-2.0
/*
 * tc plugin for the qdisc sbrm, see tc-sbrm(8).
 *
 * The words of the command line become the attributes of pkt_sbrm.h, and a
 * dump becomes the same words, so that what "tc qdisc show" prints can be given
 * to "tc qdisc add" again. A flag travels only if a word named it: "tc qdisc
 * change" leaves all others as they are.
 */
#include <stdlib.h>
#include <string.h>

#include "pkt_sbrm.h"
#include "tc_plugin.h"

/* Bytes, the whole message: ours needs less than 200. */
#define MSG_MAX	1024

static const char * const law_names[] = {
	[SBRM_LAW_SBRM] = "sbrm",
};

static const struct flag_word {
	const char *word;
	__u32 bit;
	bool on;
} flag_words[] = {
	{ "packets", SBRM_F_BYTES, false },
	{ "bytes", SBRM_F_BYTES, true },
	{ "ecn", SBRM_F_ECN, true },
	{ "drop", SBRM_F_ECN, false },
	{ "noecn", SBRM_F_ECN, false },
	{ "nodrop", SBRM_F_NODROP, true },
	{ "split-gso", SBRM_F_SPLIT_GSO, true },
	{ "no-split-gso", SBRM_F_SPLIT_GSO, false },
	{ "dither", SBRM_F_DITHER, true },
	{ "no-dither", SBRM_F_DITHER, false },
};

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* What the line asks for. */
struct request {
	const char *law, *limit, *target, *gamma;	/* words, NULL: absent */
	struct nla_bitfield32 flags;
	bool reset_stats;
};

static void explain(void)
{
	fputs("Usage: ... sbrm [ mark sbrm ] [ limit N ] [ target N ] [ gamma auto|NUMBER ]\n"
	      "                [ packets | bytes ] [ ecn | drop ] [ nodrop ]\n"
	      "                [ split-gso | no-split-gso ] [ dither | no-dither ]\n"
	      "                [ reset-stats ]\n"
	      "\n"
	      "mark    the price law: sbrm is m = 1 - exp(-gamma [backlog - target]+)\n"
	      "limit   room of the queue, packets; with bytes a size such as 300kb\n"
	      "target  backlog up to which nothing is marked, same unit, below limit\n"
	      "gamma   price per packet or byte above target, above 0 and at most 1;\n"
	      "        auto: marks 99 % at the limit\n"
	      "ecn     mark ECN-capable packets and drop the others as often; with\n"
	      "        nodrop let the others pass; drop (or noecn): drop all\n"
	      "dither  share out the marks of each flow evenly; no-dither: draw for\n"
	      "        each packet by itself\n",
	      stderr);
}

/* One sentence for a value that cannot be; a NULL @word is one missing. */
static int bad_value(const char *option, const char *takes, const char *word)
{
	if (word)
		fprintf(stderr, "sbrm: %s takes %s, not \"%s\".\n", option,
			takes, word);
	else
		fprintf(stderr, "sbrm: %s takes %s, and the line ends there.\n",
			option, takes);
	return -1;
}

static int parse_law(const char *word, __u32 *law)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(law_names); i++)
		if (strcmp(word, law_names[i]) == 0) {
			*law = i;
			return 0;
		}

	return bad_value("mark", "the name of a price law: sbrm", word);
}

/*
 * Decimal to units of 2^-48, rounded to nearest; 0 if the word is no number in
 * (0, 1]. The product is exact: it only moves the exponent.
 */
static __u64 gamma_from_word(const char *word)
{
	long double gamma;
	char *end;

	if (!*word || strspn(word, "0123456789.eE+-") != strlen(word))
		return 0;

	gamma = strtold(word, &end);
	if (*end || !(gamma > 0 && gamma <= 1))
		return 0;

	return gamma * SBRM_GAMMA_ONE + 0.5L;
}

static int parse_gamma(const char *word, __u64 *gamma)
{
	*gamma = 0;
	if (strcmp(word, "auto") == 0)
		return 0;

	*gamma = gamma_from_word(word);
	if (!*gamma)
		return bad_value("gamma",
				 "auto or a decimal number from 2e-15 to 1",
				 word);
	return 0;
}

static char last_char(const char *word)
{
	return word && *word ? word[strlen(word) - 1] : '\0';
}

/* "1000p" says its unit, and so does what tc shows. */
static bool says_packets(const char *word)
{
	return last_char(word) == 'p';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool packets_from_word(const char *word, __u32 *value)
{
	char digits[16];
	size_t len = strlen(word) - says_packets(word);

	if (!is_digit(*word) || len >= sizeof(digits))
		return false;

	memcpy(digits, word, len);
	digits[len] = '\0';
	return get_u32(value, digits, 10) == 0;
}

static bool bytes_from_word(const char *word, __u32 *value)
{
	return is_digit(*word) && get_size(value, word) == 0;
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

/* 1: it is one and was taken, 0: it is none, -1: it contradicts another. */
static int parse_flag(const char *word, struct nla_bitfield32 *flags)
{
	const struct flag_word *w, *other;
	const struct flag_word *end = flag_words + ARRAY_SIZE(flag_words);

	for (w = flag_words; w < end && strcmp(word, w->word); w++)
		;
	if (w == end)
		return 0;

	if ((flags->selector & w->bit) && !(flags->value & w->bit) == w->on) {
		for (other = flag_words; other->bit != w->bit ||
		     other->on == w->on; other++)
			;
		fprintf(stderr, "sbrm: %s contradicts %s.\n", word,
			other->word);
		return -1;
	}

	flags->selector |= w->bit;
	if (w->on)
		flags->value |= w->bit;
	return 1;
}

/*
 * "ecn" and "drop" alone also say what becomes of packets that are not
 * ECN-capable: the price drops them.
 */
static int settle_nodrop(struct nla_bitfield32 *flags)
{
	if (!(flags->selector & SBRM_F_ECN))
		return 0;

	if ((flags->value & SBRM_F_NODROP) && !(flags->value & SBRM_F_ECN)) {
		fputs("sbrm: nodrop goes with ecn, not with drop.\n", stderr);
		return -1;
	}

	flags->selector |= SBRM_F_NODROP;
	return 0;
}

/*
 * An option and its value: how many words were taken, or -1. The value stays a
 * word, since the unit of an amount may come later on the line.
 */
static int parse_option(int argc, char **argv, struct request *req)
{
	const struct {
		const char *option, *takes;
		const char **value;
	} options[] = {
		{ "mark", "the name of a price law", &req->law },
		{ "limit", "a number of packets or a size", &req->limit },
		{ "target", "a number of packets or a size", &req->target },
		{ "gamma", "auto or a number", &req->gamma },
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
		taken = parse_flag(*argv, &req->flags);
		if (!taken)
			taken = parse_option(argc, argv, req);
		if (taken < 0)
			return -1;
	}

	return settle_nodrop(&req->flags);
}

static int sbrm_parse_opt(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev)
{
	struct request req = {};
	__u32 law = 0, limit = 0, target = 0;
	struct rtattr *nest;
	__u64 gamma = 0;
	bool bytes;

	(void)qu;
	(void)dev;

	if (parse_words(argc, argv, &req))
		return -1;

	bytes = req.flags.value & SBRM_F_BYTES;
	if (says_packets(req.limit) || says_packets(req.target))
		req.flags.selector |= SBRM_F_BYTES;

	if ((req.law && parse_law(req.law, &law)) ||
	    (req.limit &&
	     parse_amount("limit", req.limit, bytes, 1, &limit)) ||
	    (req.target &&
	     parse_amount("target", req.target, bytes, 0, &target)) ||
	    (req.gamma && parse_gamma(req.gamma, &gamma)))
		return -1;

	if (req.limit && req.target && target >= limit) {
		fprintf(stderr,
			"sbrm: target takes less than the limit, not %s with limit %s.\n",
			req.target, req.limit);
		return -1;
	}

	nest = addattr_nest(n, MSG_MAX, TCA_OPTIONS | NLA_F_NESTED);
	if (req.law)
		addattr32(n, MSG_MAX, TCA_SBRM_LAW, law);
	if (req.limit)
		addattr32(n, MSG_MAX, TCA_SBRM_LIMIT, limit);
	if (req.target)
		addattr32(n, MSG_MAX, TCA_SBRM_TARGET, target);
	if (req.gamma)
		addattr64(n, MSG_MAX, TCA_SBRM_GAMMA, gamma);
	if (req.flags.selector)
		addattr_l(n, MSG_MAX, TCA_SBRM_FLAGS, &req.flags,
			  sizeof(req.flags));
	if (req.reset_stats)
		addattr(n, MSG_MAX, TCA_SBRM_RESET_STATS);
	addattr_nest_end(n, nest);
	return 0;
}

/* False if the attribute is absent, or too short to hold @len bytes. */
static bool get_attr(struct rtattr *rta, void *to, size_t len)
{
	if (!rta || RTA_PAYLOAD(rta) < len)
		return false;

	memcpy(to, RTA_DATA(rta), len);
	return true;
}

static void print_law(__u32 law)
{
	char number[16];
	const char *name = number;

	if (law < ARRAY_SIZE(law_names))
		name = law_names[law];
	else
		snprintf(number, sizeof(number), "%u", law);

	print_string(PRINT_ANY, "law", "mark %s ", name);
}

/* print_size() rounds to six digits and whole Kb or Mb: only if that is exact. */
static void print_amount(const char *option, __u32 value, bool bytes)
{
	print_uint(PRINT_JSON, option, NULL, value);
	print_string(PRINT_FP, NULL, "%s ", option);
	if (!bytes)
		print_uint(PRINT_FP, NULL, "%up ", value);
	else if (value % 1024 == 0 && value / 1024 < 1000000)
		print_size(PRINT_FP, NULL, "%s ", value);
	else
		print_uint(PRINT_FP, NULL, "%ub ", value);
}

/* A number that was set gets the digits it takes to come back as it was. */
static void print_gamma(__u64 units, bool is_auto)
{
	double gamma = (double)units / SBRM_GAMMA_ONE;
	char word[32];
	int digits;

	for (digits = 3; digits <= 17; digits++) {
		snprintf(word, sizeof(word), "%.*g", digits, gamma);
		if (is_auto || gamma_from_word(word) == units)
			break;
	}

	print_float(PRINT_JSON, "gamma", NULL, gamma);
	print_string(PRINT_FP, NULL, "gamma %s ", word);
	print_bool(PRINT_JSON, "gamma_auto", NULL, is_auto);
	if (is_auto)
		print_string(PRINT_FP, NULL, "(auto) ", NULL);
}

static void print_flags(__u32 flags)
{
	bool ecn = flags & SBRM_F_ECN;
	bool nodrop = flags & SBRM_F_NODROP;
	bool split_gso = flags & SBRM_F_SPLIT_GSO;
	bool dither = flags & SBRM_F_DITHER;

	print_bool(PRINT_JSON, "ecn", NULL, ecn);
	print_bool(PRINT_JSON, "nodrop", NULL, nodrop);
	print_bool(PRINT_JSON, "split_gso", NULL, split_gso);
	print_bool(PRINT_JSON, "dither", NULL, dither);

	print_string(PRINT_FP, NULL, "%s ", ecn ? "ecn" : "drop");
	if (ecn && nodrop)
		print_string(PRINT_FP, NULL, "nodrop ", NULL);
	print_string(PRINT_FP, NULL, "%s ",
		     split_gso ? "split-gso" : "no-split-gso");
	print_string(PRINT_FP, NULL, "%s ", dither ? "dither" : "no-dither");
}

static int sbrm_print_opt(const struct qdisc_util *qu, FILE *f,
			  struct rtattr *opt)
{
	struct rtattr *tb[TCA_SBRM_MAX + 1];
	struct nla_bitfield32 flags = {};
	bool bytes, have_flags;
	__u64 gamma;
	__u32 value;

	(void)qu;
	(void)f;

	if (!opt)
		return 0;

	parse_rtattr_nested(tb, TCA_SBRM_MAX, opt);
	have_flags = get_attr(tb[TCA_SBRM_FLAGS], &flags, sizeof(flags));
	bytes = flags.value & SBRM_F_BYTES;

	if (get_attr(tb[TCA_SBRM_LAW], &value, sizeof(value)))
		print_law(value);
	if (get_attr(tb[TCA_SBRM_LIMIT], &value, sizeof(value)))
		print_amount("limit", value, bytes);
	if (get_attr(tb[TCA_SBRM_TARGET], &value, sizeof(value)))
		print_amount("target", value, bytes);
	if (have_flags)
		print_string(PRINT_JSON, "unit", NULL,
			     bytes ? "bytes" : "packets");
	if (bytes)
		print_string(PRINT_FP, NULL, "bytes ", NULL);
	if (get_attr(tb[TCA_SBRM_GAMMA], &gamma, sizeof(gamma)))
		print_gamma(gamma, flags.value & SBRM_F_GAMMA_AUTO);
	if (have_flags)
		print_flags(flags.value);
	return 0;
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

	/* tc itself has a "packets" in the same object: what was sent. */
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
	return 0;
}

struct qdisc_util sbrm_qdisc_util = {
	.id = "sbrm",
	.parse_qopt = sbrm_parse_opt,
	.print_qopt = sbrm_print_opt,
	.print_xstats = sbrm_print_xstats,
};
