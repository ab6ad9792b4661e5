// SPDX-License-Identifier: GPL-2.0
/*
 * tc plugin for the qdisc fq_rr, see tc-fq_rr(8).
 *
 * The words of the command line become the attributes of pkt_fq_rr.h, and a
 * dump becomes the same words, so that what "tc qdisc show" prints can be given
 * to "tc qdisc add" again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pkt_fq_rr.h"
#include "tc_plugin.h"

#define KIND	"fq_rr"
#include "tc_words.h"

/* Largest message, bytes: this plugin needs less than 300. */
#define MSG_MAX	1024

static const char * const service_names[] = {
	[FQ_RR_SERVICE_RR] = "rr",
	[FQ_RR_SERVICE_DRR] = "drr",
	[FQ_RR_SERVICE_WFQ] = "wfq",
};

static const char * const overflow_names[] = {
	[FQ_RR_DROP_LAST] = "drop-last",
	[FQ_RR_DROP_TAIL_OF_LONGEST] = "drop-tail-of-longest",
	[FQ_RR_DROP_LONGEST] = "drop-longest",
};

static const char * const longest_names[] = {
	[FQ_RR_LONGEST_PACKETS] = "packets",
	[FQ_RR_LONGEST_BYTES] = "bytes",
};

static const char * const classify_names[] = {
	[FQ_RR_CLASSIFY_FLOW] = "flow",
	[FQ_RR_CLASSIFY_PRIORITY] = "priority",
	[FQ_RR_CLASSIFY_MARK] = "mark",
};

static const char * const weigh_names[] = {
	[FQ_RR_WEIGH_PRIORITY] = "priority",
	[FQ_RR_WEIGH_MARK] = "mark",
};

static const struct flag_word flag_words[] = {
	{ "split-gso", FQ_RR_F_SPLIT_GSO, true },
	{ "no-split-gso", FQ_RR_F_SPLIT_GSO, false },
};

/* Options whose value is one of a few names. */
static const struct choice {
	const char *option, *takes;
	int attr;
	const char * const *names;
	size_t count;
} choices[] = {
	{ "service", "rr, drr or wfq", TCA_FQ_RR_SERVICE, service_names,
	  ARRAY_SIZE(service_names) },
	{ "overflow", "drop-last, drop-tail-of-longest or drop-longest",
	  TCA_FQ_RR_OVERFLOW, overflow_names, ARRAY_SIZE(overflow_names) },
	{ "longest", "packets or bytes", TCA_FQ_RR_LONGEST, longest_names,
	  ARRAY_SIZE(longest_names) },
	{ "classify", "flow, priority or mark", TCA_FQ_RR_CLASSIFY,
	  classify_names, ARRAY_SIZE(classify_names) },
	{ "weigh", "priority or mark", TCA_FQ_RR_WEIGH, weigh_names,
	  ARRAY_SIZE(weigh_names) },
};

enum unit {
	UNIT_PACKETS,
	UNIT_BYTES,
	UNIT_PLAIN,
	UNIT_SECONDS,
};

/* Options whose value is a number from @least to @most. */
static const struct amount {
	const char *option, *takes;
	int attr;
	enum unit unit;
	__u32 least, most;
} amounts[] = {
	{ "limit", "a number of packets from 1 to 1048576", TCA_FQ_RR_LIMIT,
	  UNIT_PACKETS, 1, FQ_RR_LIMIT_MAX },
	{ "memory_limit", "a size from 1b to 2gb, such as 32mb",
	  TCA_FQ_RR_MEMORY_LIMIT, UNIT_BYTES, 1, FQ_RR_MEMORY_MAX },
	{ "flows", "a number of queues from 1 to 65536", TCA_FQ_RR_FLOWS,
	  UNIT_PLAIN, 1, FQ_RR_FLOWS_MAX },
	{ "quantum", "a size from 1b to 1mb, such as 1514", TCA_FQ_RR_QUANTUM,
	  UNIT_BYTES, 1, FQ_RR_QUANTUM_MAX },
	{ "perturb", "a whole number of seconds from 0 to 86400",
	  TCA_FQ_RR_PERTURB, UNIT_SECONDS, 0, FQ_RR_PERTURB_MAX },
	{ "reserve", "a number of packets from 0 to 1048576", TCA_FQ_RR_RESERVE,
	  UNIT_PACKETS, 0, FQ_RR_LIMIT_MAX },
};

#define WEIGHTS_TAKE	"1 to 16 numbers from 1 to 1024, such as 1,2,4"
#define WEIGHT_TAKES	"a number from 0 to 1024"

/* The options of a command line, as words; NULL if absent. */
struct request {
	const char *choice[ARRAY_SIZE(choices)];
	const char *amount[ARRAY_SIZE(amounts)];
	const char *weights;
	struct nla_bitfield32 flags;
};

static void explain(void)
{
	fputs("Usage: ... fq_rr [ limit PACKETS ] [ memory_limit SIZE ] [ flows N ]\n"
	      "                 [ service rr | drr | wfq ] [ quantum SIZE ]\n"
	      "                 [ overflow drop-last | drop-tail-of-longest |\n"
	      "                   drop-longest ] [ longest packets | bytes ]\n"
	      "                 [ classify flow | priority | mark ]\n"
	      "                 [ weigh priority | mark ] [ weights W0,W1,... ]\n"
	      "                 [ perturb SECONDS ] [ reserve PACKETS ]\n"
	      "                 [ split-gso | no-split-gso ]\n"
	      "       tc class change ... fq_rr weight N\n"
	      "\n"
	      "limit     size of the buffer that all flows share, packets (10240)\n"
	      "memory_limit  size of the buffer in bytes of kernel memory (32mb)\n"
	      "flows     number of queues, 1 to 65536 (4096)\n"
	      "service   rr: packets of each flow in turn (default); drr: a quantum of\n"
	      "          bytes in turn; wfq: by virtual finish time; all times weight\n"
	      "quantum   bytes in a turn of drr, at least 256 (a frame of the device)\n"
	      "overflow  what to drop when the buffer is full:\n"
	      "          drop-last: the packet that arrives\n"
	      "          drop-tail-of-longest: the last packet of the longest queue\n"
	      "          (default)\n"
	      "          drop-longest: all packets of the longest queue\n"
	      "longest   compare lengths of queues in packets (default) or bytes\n"
	      "classify  select the queue by a hash of the flow (default), by priority or\n"
	      "          by mark; filters and priorities that name a class come first\n"
	      "weigh     weights apply to priorities (default) or to marks\n"
	      "weights   of packets with priority (or mark) 0, 1, ..., 1 to 1024 each;\n"
	      "          other packets have 1; \"weights 1\" removes the list\n"
	      "perturb   seconds after which the hash gets a new key; 0: never (0)\n"
	      "reserve   part of the limit that each flow with packets owns (0)\n"
	      "split-gso split super-packets into segments; no-split-gso: do not\n"
	      "weight    of one class, 1 to 1024; 0: that of its packets\n",
	      stderr);
}

static bool seconds_from_word(const char *word, __u32 *value)
{
	char digits[16];
	size_t len = strlen(word) - (last_char(word) == 's');

	if (!is_digit(*word) || len >= sizeof(digits))
		return false;

	memcpy(digits, word, len);
	digits[len] = '\0';
	return get_u32(value, digits, 10) == 0;
}

static int parse_amount(const struct amount *amount, const char *word,
			__u32 *value)
{
	bool ok = false;

	switch (amount->unit) {
	case UNIT_PACKETS:
		ok = packets_from_word(word, value);
		break;
	case UNIT_BYTES:
		ok = bytes_from_word(word, value);
		break;
	case UNIT_PLAIN:
		ok = is_digit(*word) && get_u32(value, word, 10) == 0;
		break;
	case UNIT_SECONDS:
		ok = seconds_from_word(word, value);
		break;
	}
	if (ok && *value >= amount->least && *value <= amount->most)
		return 0;

	return bad_value(amount->option, amount->takes, word);
}

/* Parse a list such as "1,2,4"; returns the number of weights, or -1. */
static int parse_weights(const char *word, __u32 weights[])
{
	const char *at = word;
	int count = 0;
	char *end;

	do {
		unsigned long weight;

		weight = is_digit(*at) ? strtoul(at, &end, 10) : 0;
		if (!weight || weight > FQ_RR_WEIGHT_MAX ||
		    count == FQ_RR_WEIGHTS_MAX || (*end && *end != ','))
			return bad_value("weights", WEIGHTS_TAKE, word);
		weights[count++] = weight;
		at = end + 1;
	} while (*end);

	return count;
}

/* The field of the value of an option, or NULL; @takes is set to its description. */
static const char **request_slot(struct request *req, const char *option,
				 const char **takes)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(choices); i++)
		if (strcmp(option, choices[i].option) == 0) {
			*takes = choices[i].takes;
			return &req->choice[i];
		}
	for (i = 0; i < ARRAY_SIZE(amounts); i++)
		if (strcmp(option, amounts[i].option) == 0) {
			*takes = amounts[i].takes;
			return &req->amount[i];
		}
	if (strcmp(option, "weights") == 0) {
		*takes = WEIGHTS_TAKE;
		return &req->weights;
	}
	return NULL;
}

static int parse_option(int argc, char **argv, struct request *req)
{
	const char **slot, *takes;

	slot = request_slot(req, *argv, &takes);
	if (!slot) {
		fprintf(stderr,
			"fq_rr: unknown word \"%s\", try \"... fq_rr help\".\n",
			*argv);
		return -1;
	}
	if (*slot) {
		fprintf(stderr, "fq_rr: %s is given twice.\n", *argv);
		return -1;
	}
	if (argc < 2)
		return bad_value(*argv, takes, NULL);
	*slot = argv[1];
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
		taken = parse_flag(flag_words, ARRAY_SIZE(flag_words), *argv,
				   &req->flags);
		if (!taken)
			taken = parse_option(argc, argv, req);
		if (taken < 0)
			return -1;
	}
	return 0;
}

static int add_attributes(struct nlmsghdr *n, const struct request *req)
{
	__u32 weights[FQ_RR_WEIGHTS_MAX], value;
	int count;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(choices); i++) {
		const struct choice *c = &choices[i];

		if (!req->choice[i])
			continue;
		if (parse_name(c->option, c->takes, c->names, c->count,
			       req->choice[i], &value))
			return -1;
		addattr32(n, MSG_MAX, c->attr, value);
	}
	for (i = 0; i < ARRAY_SIZE(amounts); i++) {
		if (!req->amount[i])
			continue;
		if (parse_amount(&amounts[i], req->amount[i], &value))
			return -1;
		addattr32(n, MSG_MAX, amounts[i].attr, value);
	}
	if (req->weights) {
		count = parse_weights(req->weights, weights);
		if (count < 0)
			return -1;
		addattr_l(n, MSG_MAX, TCA_FQ_RR_WEIGHTS, weights,
			  count * sizeof(*weights));
	}
	if (req->flags.selector)
		addattr_l(n, MSG_MAX, TCA_FQ_RR_FLAGS, &req->flags,
			  sizeof(req->flags));
	return 0;
}

static int fq_rr_parse_opt(const struct qdisc_util *qu, int argc, char **argv,
			   struct nlmsghdr *n, const char *dev)
{
	struct request req = {};
	struct rtattr *nest;

	(void)qu;
	(void)dev;

	if (parse_words(argc, argv, &req))
		return -1;

	nest = addattr_nest(n, MSG_MAX, TCA_OPTIONS | NLA_F_NESTED);
	if (add_attributes(n, &req))
		return -1;
	addattr_nest_end(n, nest);
	return 0;
}

static int fq_rr_parse_class_opt(const struct qdisc_util *qu, int argc,
				 char **argv, struct nlmsghdr *n,
				 const char *dev)
{
	struct rtattr *nest;
	__u32 weight;

	(void)qu;
	(void)dev;

	if (argc < 1 || strcmp(*argv, "weight") || argc > 2) {
		fputs("fq_rr: a class takes weight N, " WEIGHT_TAKES ".\n",
		      stderr);
		return -1;
	}
	if (argc < 2)
		return bad_value(*argv, WEIGHT_TAKES, NULL);
	if (!is_digit(*argv[1]) || get_u32(&weight, argv[1], 10) ||
	    weight > FQ_RR_WEIGHT_MAX)
		return bad_value(*argv, WEIGHT_TAKES, argv[1]);

	nest = addattr_nest(n, MSG_MAX, TCA_OPTIONS | NLA_F_NESTED);
	addattr32(n, MSG_MAX, TCA_FQ_RR_CLASS_WEIGHT, weight);
	addattr_nest_end(n, nest);
	return 0;
}

static void print_one_amount(const struct amount *amount, __u32 value)
{
	switch (amount->unit) {
	case UNIT_PACKETS:
	case UNIT_BYTES:
		print_amount(amount->option, value,
			     amount->unit == UNIT_BYTES);
		return;
	case UNIT_PLAIN:
		print_uint(PRINT_JSON, amount->option, NULL, value);
		print_string(PRINT_FP, NULL, "%s ", amount->option);
		print_uint(PRINT_FP, NULL, "%u ", value);
		return;
	case UNIT_SECONDS:
		print_uint(PRINT_JSON, amount->option, NULL, value);
		print_string(PRINT_FP, NULL, "%s ", amount->option);
		print_uint(PRINT_FP, NULL, "%us ", value);
		return;
	}
}

static void print_choice(const struct choice *choice, __u32 value)
{
	print_string(PRINT_FP, NULL, "%s ", choice->option);
	print_name(choice->option, "%s ", choice->names, choice->count, value);
}

static void print_weights(struct rtattr *attr)
{
	size_t count = attr ? RTA_PAYLOAD(attr) / sizeof(__u32) : 0, i;
	__u32 weights[FQ_RR_WEIGHTS_MAX];

	if (!count || count > ARRAY_SIZE(weights))
		return;

	memcpy(weights, RTA_DATA(attr), count * sizeof(*weights));
	open_json_array(PRINT_JSON, "weights");
	print_string(PRINT_FP, NULL, "weights ", NULL);
	for (i = 0; i < count; i++)
		print_uint(PRINT_ANY, NULL, i + 1 < count ? "%u," : "%u ",
			   weights[i]);
	close_json_array(PRINT_JSON, NULL);
}

static int fq_rr_print_opt(const struct qdisc_util *qu, FILE *f,
			   struct rtattr *opt)
{
	struct rtattr *tb[TCA_FQ_RR_MAX + 1];
	struct nla_bitfield32 flags;
	bool split_gso;
	__u32 value;
	size_t i;

	(void)qu;
	(void)f;

	if (!opt)
		return 0;

	parse_rtattr_nested(tb, TCA_FQ_RR_MAX, opt);
	for (i = 0; i < ARRAY_SIZE(amounts); i++)
		/* A reservation of 0 is not printed. */
		if (get_attr(tb[amounts[i].attr], &value, sizeof(value)) &&
		    (value || amounts[i].attr != TCA_FQ_RR_RESERVE))
			print_one_amount(&amounts[i], value);
	for (i = 0; i < ARRAY_SIZE(choices); i++)
		if (get_attr(tb[choices[i].attr], &value, sizeof(value)))
			print_choice(&choices[i], value);
	print_weights(tb[TCA_FQ_RR_WEIGHTS]);
	if (get_attr(tb[TCA_FQ_RR_FLAGS], &flags, sizeof(flags))) {
		split_gso = flags.value & FQ_RR_F_SPLIT_GSO;
		print_bool(PRINT_JSON, "split_gso", NULL, split_gso);
		print_string(PRINT_FP, NULL, "%s ",
			     split_gso ? "split-gso" : "no-split-gso");
	}
	return 0;
}

static int fq_rr_print_class_opt(const struct qdisc_util *qu, FILE *f,
				 struct rtattr *opt)
{
	struct rtattr *tb[TCA_FQ_RR_MAX + 1];
	__u32 weight;

	(void)qu;
	(void)f;

	if (!opt)
		return 0;

	parse_rtattr_nested(tb, TCA_FQ_RR_MAX, opt);
	if (get_attr(tb[TCA_FQ_RR_CLASS_WEIGHT], &weight, sizeof(weight)))
		print_uint(PRINT_ANY, "weight", "weight %u ", weight);
	return 0;
}

static void print_qdisc_xstats(const struct tc_fq_rr_qd_stats *st)
{
	print_uint(PRINT_ANY, "flows_used", " flows %u", st->flows);
	print_uint(PRINT_ANY, "flows_max", " max %u", st->flows_max);
	print_lluint(PRINT_ANY, "new_flows", " new %llu", st->new_flows);
	print_lluint(PRINT_ANY, "collisions", " collisions %llu",
		     st->collisions);
	print_lluint(PRINT_ANY, "moved_flows", " moved %llu", st->moved_flows);
	print_lluint(PRINT_ANY, "rehashes", " rehashes %llu", st->rehashes);
	print_nl();
	print_lluint(PRINT_ANY, "last_drops", " last_drops %llu",
		     st->last_drops);
	print_lluint(PRINT_ANY, "longest_drops", " longest_drops %llu",
		     st->longest_drops);
	print_lluint(PRINT_ANY, "longest_events", " in %llu",
		     st->longest_events);
	print_lluint(PRINT_ANY, "own_drops", " own_drops %llu", st->own_drops);
	print_lluint(PRINT_ANY, "memory_drops", " memory_drops %llu",
		     st->memory_drops);
	print_lluint(PRINT_ANY, "trim_drops", " trim_drops %llu",
		     st->trim_drops);
	print_nl();
	print_uint(PRINT_ANY, "longest_now", " longest %u", st->longest);
	print_uint(PRINT_ANY, "packets_max", " packets max %u",
		   st->packets_max);
	print_uint(PRINT_ANY, "memory_used", " memory %ub", st->memory);
	print_uint(PRINT_ANY, "memory_max", " max %ub", st->memory_max);
	print_uint(PRINT_ANY, "quantum_used", " quantum %ub", st->quantum);
	print_uint(PRINT_ANY, "owners", " owners %u", st->owners);
	print_lluint(PRINT_ANY, "refused", " refused %llu", st->refused);
}

static void print_class_xstats(const struct tc_fq_rr_cl_stats *st)
{
	print_uint(PRINT_ANY, "weight_used", " weight %u", st->weight);
	print_int(PRINT_ANY, "credit", " credit %d", st->credit);
	print_uint(PRINT_ANY, "memory_used", " memory %ub", st->memory);
	print_uint(PRINT_ANY, "packets_max", " packets max %u",
		   st->packets_max);
	print_lluint(PRINT_ANY, "collisions", " collisions %llu",
		     st->collisions);
	print_uint(PRINT_ANY, "reserve_used", " reserve %up", st->reserve);
}

/* Statistics that an older kernel does not send are 0. */
static int fq_rr_print_xstats(const struct qdisc_util *qu, FILE *f,
			      struct rtattr *xstats)
{
	struct tc_fq_rr_xstats st = {};
	size_t len;

	(void)qu;
	(void)f;

	if (!xstats)
		return 0;

	len = RTA_PAYLOAD(xstats);
	memcpy(&st, RTA_DATA(xstats), len < sizeof(st) ? len : sizeof(st));

	if (st.type == TC_FQ_RR_XSTATS_QDISC)
		print_qdisc_xstats(&st.qdisc);
	else if (st.type == TC_FQ_RR_XSTATS_CLASS)
		print_class_xstats(&st.cl);
	return 0;
}

struct qdisc_util fq_rr_qdisc_util = {
	.id = "fq_rr",
	.parse_qopt = fq_rr_parse_opt,
	.print_qopt = fq_rr_print_opt,
	.print_xstats = fq_rr_print_xstats,
	.parse_copt = fq_rr_parse_class_opt,
	.print_copt = fq_rr_print_class_opt,
};
