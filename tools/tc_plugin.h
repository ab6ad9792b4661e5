/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface of tc for plugins. iproute2 installs no header, so the part of its binary
 * interface that these plugins need is declared here.
 *
 * tc loads q_<kind>.so and looks for the object <kind>_qdisc_util; the plugin's
 * undefined symbols are found in tc itself. The selftests check that each of
 * them is exported by the tc that is installed.
 *
 * It is valid for iproute2 6.1 to 7.1. Two changes in between do not affect a call: the
 * first argument of the callbacks became const, and print_color_size() takes 64 bits
 * since 6.18. Older versions read the lower half of the argument. It is the last one, so
 * this works on all machines except 32-bit big-endian ones.
 */
#ifndef _TC_PLUGIN_H
#define _TC_PLUGIN_H

#include <stdbool.h>
#include <stdio.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/types.h>

/**
 * struct qdisc_util - the functions of a kind of qdisc
 * @next: list of tc, so the object must be writable
 * @id: the kind
 * @parse_qopt: words of the command line to %TCA_OPTIONS in @n; 0, or -1 after
 *	a message on stderr
 * @print_qopt: %TCA_OPTIONS of a dump to stdout, or NULL if there were none
 * @print_xstats: %TCA_XSTATS of a dump to stdout
 * @parse_copt: as @parse_qopt, for a class
 * @print_copt: as @print_qopt, for a class
 * @has_block: does the qdisc use this filter block?
 *
 * All of them but @id may be NULL.
 */
struct qdisc_util {
	struct qdisc_util *next;
	const char *id;
	int (*parse_qopt)(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev);
	int (*print_qopt)(const struct qdisc_util *qu, FILE *f,
			  struct rtattr *opt);
	int (*print_xstats)(const struct qdisc_util *qu, FILE *f,
			    struct rtattr *xstats);
	int (*parse_copt)(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev);
	int (*print_copt)(const struct qdisc_util *qu, FILE *f,
			  struct rtattr *opt);
	int (*has_block)(const struct qdisc_util *qu, struct rtattr *opt,
			 __u32 block, bool *has);
};

/* Convert words to numbers. Return 0, or another value if the word is not valid. */
int get_u32(__u32 *val, const char *arg, int base);
int get_size(unsigned int *size, const char *str);	/* "15k": 15360 */
int get_rate64(__u64 *rate, const char *str);	/* "8kbit": 1000 bytes/s */
int get_time(unsigned int *time, const char *str);	/* "1ms": 1000 us */

/* Attributes; @maxlen bounds the whole message, bytes. */
int addattr(struct nlmsghdr *n, int maxlen, int type);
int addattr32(struct nlmsghdr *n, int maxlen, int type, __u32 data);
int addattr64(struct nlmsghdr *n, int maxlen, int type, __u64 data);
int addattr_l(struct nlmsghdr *n, int maxlen, int type, const void *data,
	      int alen);
struct rtattr *addattr_nest(struct nlmsghdr *n, int maxlen, int type);
int addattr_nest_end(struct nlmsghdr *n, struct rtattr *nest);

/* Fills tb[0..max]; @flags are taken off the attributes' types. */
int parse_rtattr_flags(struct rtattr *tb[], int max, struct rtattr *rta,
		       int len, unsigned short flags);

static inline int parse_rtattr_nested(struct rtattr *tb[], int max,
				      struct rtattr *nest)
{
	return parse_rtattr_flags(tb, max, RTA_DATA(nest), RTA_PAYLOAD(nest),
				  NLA_F_NESTED);
}

/* The kind of output for which something is printed. */
enum output_type {
	PRINT_FP = 1,	/* text, by the format */
	PRINT_JSON = 2,	/* JSON, by the key */
	PRINT_ANY = 4,
};

enum color_attr {
	COLOR_NONE = 6,
};

/* tc exports print_color_X(); print_X() is the same without a colour. */
#define TC_PRINT(name, type)						\
	int print_color_##name(enum output_type t, enum color_attr color, \
			       const char *key, const char *fmt, type value); \
	static inline int print_##name(enum output_type t, const char *key, \
				       const char *fmt, type value)	\
	{								\
		return print_color_##name(t, COLOR_NONE, key, fmt, value); \
	}

TC_PRINT(bool, bool)		/* text: "true" or "false" by %s */
TC_PRINT(string, const char *)
TC_PRINT(int, int)
TC_PRINT(uint, unsigned int)
TC_PRINT(lluint, unsigned long long)
TC_PRINT(float, double)		/* JSON: six digits */
TC_PRINT(size, __u64)		/* text: "15Kb" by %s, rounded; JSON: bytes */

#undef TC_PRINT

void print_nl(void);		/* text only */

/* An array in JSON alone; its elements are printed without a key. */
void open_json_array(enum output_type type, const char *str);
void close_json_array(enum output_type type, const char *delim);

#endif /* _TC_PLUGIN_H */
