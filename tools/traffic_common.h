/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by tollway-traffic and tollway-qsample: exit statuses, the clock, and the
 * exact reading of numbers.
 *
 * Times are int64_t nanoseconds of CLOCK_MONOTONIC. No floating point is used
 * anywhere: results must be the same on every machine.
 */
#ifndef TOLLWAY_TRAFFIC_COMMON_H
#define TOLLWAY_TRAFFIC_COMMON_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NSEC_PER_SEC	1000000000LL
#define NSEC_PER_MSEC	1000000LL
#define NSEC_PER_USEC	1000LL
/* 73 years: later than any run, and the sum of two does not overflow. */
#define TIME_NEVER	(INT64_MAX / 4)
#define TIME_UNSET	INT64_MIN

enum {
	STATUS_FAILED = 1,	/* a flow, a device or the output failed */
	STATUS_USAGE = 2,	/* nothing was run: the arguments are wrong */
	STATUS_SIGNAL = 128,	/* plus the signal's number, as shells do */
};

static inline void complain(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
static inline void complain(const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

#define die(status, ...) do {		\
	complain(__VA_ARGS__);		\
	exit(status);			\
} while (0)

static inline int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

static inline struct timespec ns_to_timespec(int64_t ns)
{
	return (struct timespec){
		.tv_sec = ns / NSEC_PER_SEC,
		.tv_nsec = ns % NSEC_PER_SEC,
	};
}

static inline void *checked_alloc(void *memory)
{
	if (!memory)
		die(STATUS_FAILED, "out of memory");
	return memory;
}

static inline void *checked_reallocarray(void *memory, size_t count,
					 size_t size)
{
	return checked_alloc(reallocarray(memory, count, size));
}

/* Enlarge an array of @room elements, with zeros, so that it has one at @index. */
static inline void *checked_reach(void *memory, size_t *room, size_t index,
				  size_t size)
{
	size_t wanted = 2 * index + 64;

	if (index < *room)
		return memory;
	memory = checked_reallocarray(memory, wanted, size);
	memset((char *)memory + *room * size, 0, (wanted - *room) * size);
	*room = wanted;
	return memory;
}

/*
 * Read a non-negative decimal number, times @scale, as an exact integer.
 * With @suffixes, k, m and g multiply by 10^3, 10^6 and 10^9. Returns false if the
 * text is not such a number, if the result is not an integer, or if it does not fit.
 */
static inline bool parse_decimal(const char *text, int64_t scale,
				 bool suffixes, int64_t *value)
{
	__int128 mantissa = 0, divisor = 1;
	bool fraction = false, digits = false;

	for (; *text; text++) {
		if (*text == '.' && !fraction) {
			fraction = true;
			continue;
		}
		if (*text < '0' || *text > '9')
			break;
		digits = true;
		mantissa = mantissa * 10 + (*text - '0');
		if (fraction)
			divisor *= 10;
		/* 10^18 times a scale of 10^18 still fits 128 bits. */
		if (mantissa >= 1000000000000000000 ||
		    divisor > 1000000000000000000)
			return false;
	}
	if (!digits)
		return false;
	if (suffixes && *text) {
		switch (*text++) {
		case 'k': case 'K':
			scale *= 1000;
			break;
		case 'm': case 'M':
			scale *= 1000000;
			break;
		case 'g': case 'G':
			scale *= 1000000000;
			break;
		default:
			return false;
		}
	}
	if (*text)
		return false;
	mantissa *= scale;
	if (mantissa % divisor || mantissa / divisor >= TIME_NEVER)
		return false;
	*value = mantissa / divisor;
	return true;
}

static inline bool parse_seconds(const char *text, int64_t *ns)
{
	return parse_decimal(text, NSEC_PER_SEC, false, ns);
}

/* A count of bits or bytes, with the optional suffixes k, m and g. */
static inline bool parse_quantity(const char *text, int64_t *value)
{
	return parse_decimal(text, 1, true, value);
}

static inline bool parse_integer(const char *text, int64_t minimum,
				 int64_t maximum, int64_t *value)
{
	int64_t parsed;

	if (strchr(text, '.') || !parse_decimal(text, 1, false, &parsed))
		return false;
	if (parsed < minimum || parsed > maximum)
		return false;
	*value = parsed;
	return true;
}

/* Read the value of an option; exit with a message if it is not valid. */
static inline int64_t option_seconds(const char *name, const char *text)
{
	int64_t ns;

	if (!parse_seconds(text, &ns))
		die(STATUS_USAGE, "%s: '%s' is not a number of seconds",
		    name, text);
	return ns;
}

static inline int64_t option_integer(const char *name, const char *text,
				     int64_t minimum, int64_t maximum)
{
	int64_t value;

	if (!parse_integer(text, minimum, maximum, &value))
		die(STATUS_USAGE,
		    "%s: '%s' is not a whole number from %lld to %lld",
		    name, text, (long long)minimum, (long long)maximum);
	return value;
}

#endif
