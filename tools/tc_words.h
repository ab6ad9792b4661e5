/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Conversion of words to values and of values to words, for all plugins of tc. A plugin
 * defines KIND, the name of its qdisc, before it includes this file.
 */
#ifndef _TC_WORDS_H
#define _TC_WORDS_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tc_plugin.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* Print an error for a value that is not valid, or missing (@word is NULL). */
static inline int bad_value(const char *option, const char *takes,
			    const char *word)
{
	if (word)
		fprintf(stderr, KIND ": %s takes %s, not \"%s\".\n", option,
			takes, word);
	else
		fprintf(stderr, KIND ": %s takes %s, and the line ends there.\n",
			option, takes);
	return -1;
}

static inline int parse_name(const char *option, const char *takes,
			     const char * const names[], size_t count,
			     const char *word, __u32 *value)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (strcmp(word, names[i]) == 0) {
			*value = i;
			return 0;
		}

	return bad_value(option, takes, word);
}

static inline char last_char(const char *word)
{
	return word && *word ? word[strlen(word) - 1] : '\0';
}

/* A word such as "1000p" has the unit packets; tc prints it, too. */
static inline bool says_packets(const char *word)
{
	return last_char(word) == 'p';
}

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool packets_from_word(const char *word, __u32 *value)
{
	char digits[16];
	size_t len = strlen(word) - says_packets(word);

	if (!is_digit(*word) || len >= sizeof(digits))
		return false;

	memcpy(digits, word, len);
	digits[len] = '\0';
	return get_u32(value, digits, 10) == 0;
}

static inline bool bytes_from_word(const char *word, __u32 *value)
{
	return is_digit(*word) && get_size(value, word) == 0;
}

/* A word that sets or clears one bit. */
struct flag_word {
	const char *word;
	__u32 bit;
	bool on;
};

/* Returns 1 if the word is a flag, 0 if not, -1 if it contradicts another flag. */
static inline int parse_flag(const struct flag_word words[], size_t count,
			     const char *word, struct nla_bitfield32 *flags)
{
	const struct flag_word *w, *other;
	const struct flag_word *end = words + count;

	for (w = words; w < end && strcmp(word, w->word); w++)
		;
	if (w == end)
		return 0;

	if ((flags->selector & w->bit) && !(flags->value & w->bit) == w->on) {
		for (other = words; other->bit != w->bit ||
		     other->on == w->on; other++)
			;
		fprintf(stderr, KIND ": %s conflicts with %s.\n", word,
			other->word);
		return -1;
	}

	flags->selector |= w->bit;
	if (w->on)
		flags->value |= w->bit;
	return 1;
}

/* False if the attribute is absent, or too short to hold @len bytes. */
static inline bool get_attr(struct rtattr *rta, void *to, size_t len)
{
	if (!rta || RTA_PAYLOAD(rta) < len)
		return false;

	memcpy(to, RTA_DATA(rta), len);
	return true;
}

static inline void print_name(const char *key, const char *fmt,
			      const char * const names[], size_t count,
			      __u32 value)
{
	char number[16];
	const char *name = number;

	if (value < count)
		name = names[value];
	else
		snprintf(number, sizeof(number), "%u", value);

	print_string(PRINT_ANY, key, fmt, name);
}

/* print_size() rounds to six digits and to Kb or Mb: use it only if that is exact. */
static inline void print_amount(const char *option, __u32 value, bool bytes)
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

#endif /* _TC_WORDS_H */
