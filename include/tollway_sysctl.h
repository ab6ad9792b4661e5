/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Handlers for settings that proc_dointvec() and its family do not know:
 * decimal fractions and words out of a list. The kernel holds no lock while a
 * handler runs: two processes that write one setting are in it at the same time,
 * and others read the setting meanwhile. Each handler here writes one word, once,
 * with a value that is valid by itself, and so needs no lock. A setting of
 * several words needs a lock for its writers: that of struct tollway_net.
 */
#ifndef _TOLLWAY_SYSCTL_H
#define _TOLLWAY_SYSCTL_H

#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/string.h>
#include <linux/sysctl.h>

#include "compat.h"

/**
 * struct tollway_fraction - a setting that is a decimal number
 * @min_ppm: least value, in 10^-6
 * @max_ppm: greatest value, in 10^-6
 * @one: what 1.0 is in the stored word
 */
struct tollway_fraction {
	u32	min_ppm;
	u32	max_ppm;
	u64	one;
};

/**
 * tollway_parse_ppm() - read a decimal number such as 0.015
 * @text: the number, ended by a null or white space
 * @ppm: result in 10^-6
 *
 * Return: 0, or -EINVAL for anything but digits with at most one point, at
 * most four digits before and six after it, and for 4294.967296 and more.
 */
static inline int tollway_parse_ppm(const char *text, u32 *ppm)
{
	u32 places = 0;
	u64 value = 0;
	bool point = false, digit = false;

	for (; *text && !isspace(*text); text++) {
		if (*text == '.' && !point) {
			point = true;
			continue;
		}
		if (!isdigit(*text) || (point ? places == 6 : value >= 1000))
			return -EINVAL;
		value = value * 10 + (*text - '0');
		places += point;
		digit = true;
	}
	if (!digit || *skip_spaces(text))
		return -EINVAL;

	/* Ten digits at most. */
	for (; places < 6; places++)
		value *= 10;
	if (value > U32_MAX)
		return -EINVAL;
	*ppm = value;
	return 0;
}

/* Hand a string of at most 15 characters through proc_dostring(). */
static inline int tollway_proc_text(COMPAT_CTL_CONST struct ctl_table *ctl,
				    int write, char *text, void *buffer,
				    size_t *lenp, loff_t *ppos)
{
	struct ctl_table fake = {
		.procname = ctl->procname,
		.data = text,
		.maxlen = 16,
		.mode = ctl->mode,
	};
	int err = proc_dostring(&fake, write, buffer, lenp, ppos);

	/* What does not fit is cut off silently. */
	if (!err && write && strlen(text) == fake.maxlen - 1)
		return -EINVAL;
	return err;
}

/* A u32 as a decimal fraction; extra1 is its struct tollway_fraction. */
static inline int tollway_proc_fraction(COMPAT_CTL_CONST struct ctl_table *ctl,
					int write, void *buffer, size_t *lenp,
					loff_t *ppos)
{
	const struct tollway_fraction *range = ctl->extra1;
	u32 *value = ctl->data;
	char text[16] = "";
	u32 ppm;
	int err;

	if (!write) {
		ppm = div64_u64((u64)READ_ONCE(*value) * 1000000 +
				range->one / 2, range->one);
		snprintf(text, sizeof(text), "%u.%06u", ppm / 1000000,
			 ppm % 1000000);
	}
	err = tollway_proc_text(ctl, write, text, buffer, lenp, ppos);
	if (err || !write)
		return err;

	err = tollway_parse_ppm(text, &ppm);
	if (err)
		return err;
	if (ppm < range->min_ppm || ppm > range->max_ppm)
		return -ERANGE;
	WRITE_ONCE(*value, min_t(u64, div_u64(ppm * range->one + 500000,
					      1000000), U32_MAX));
	return 0;
}

/* A u32 as a word out of a list that ends with NULL, in extra1. */
static inline int tollway_proc_choice(COMPAT_CTL_CONST struct ctl_table *ctl,
				      int write, void *buffer, size_t *lenp,
				      loff_t *ppos)
{
	const char *const *names = ctl->extra1;
	u32 *value = ctl->data;
	char text[16] = "";
	u32 i;
	int err;

	if (!write)
		strscpy(text, names[READ_ONCE(*value)], sizeof(text));
	err = tollway_proc_text(ctl, write, text, buffer, lenp, ppos);
	if (err || !write)
		return err;

	for (i = 0; names[i]; i++) {
		if (!strcmp(strim(text), names[i])) {
			WRITE_ONCE(*value, i);
			return 0;
		}
	}
	return -EINVAL;
}

/*
 * Entries of a table of settings, each a u32. @offset is that of the member in
 * the structure of settings: see tollway_net.h.
 */
#define TOLLWAY_SETTING(_name, _offset, _handler, _extra1, _extra2)	\
{									\
	.procname	= _name,					\
	.data		= (void *)(_offset),				\
	.maxlen		= sizeof(u32),					\
	.mode		= 0644,						\
	.proc_handler	= _handler,					\
	.extra1		= (void *)(_extra1),				\
	.extra2		= (void *)(_extra2),				\
}

/* A whole number from @least to @most. */
#define TOLLWAY_SETTING_NUMBER(_name, _offset, _least, _most)		\
	TOLLWAY_SETTING(_name, _offset, proc_douintvec_minmax,		\
			&((const unsigned int){ _least }),		\
			&((const unsigned int){ _most }))

/* A decimal number, by the members of struct tollway_fraction. */
#define TOLLWAY_SETTING_FRACTION(_name, _offset, _min_ppm, _max_ppm, _one) \
	TOLLWAY_SETTING(_name, _offset, tollway_proc_fraction,		\
			&((const struct tollway_fraction){		\
				.min_ppm = _min_ppm,			\
				.max_ppm = _max_ppm,			\
				.one = _one,				\
			}), NULL)

/* A word out of a list that ends with NULL. */
#define TOLLWAY_SETTING_CHOICE(_name, _offset, _names)			\
	TOLLWAY_SETTING(_name, _offset, tollway_proc_choice, _names, NULL)

#endif /* _TOLLWAY_SYSCTL_H */
