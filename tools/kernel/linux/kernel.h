/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Definitions of kernel headers that the arithmetic of tcp_pp needs (pp_model.h,
 * pp_law.c, pp_estimator.c): tollway-traffic is built with the same files.
 */
#ifndef TOLLWAY_KERNEL_H
#define TOLLWAY_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define U8_MAX		UINT8_MAX
#define U16_MAX		UINT16_MAX
#define U32_MAX		UINT32_MAX
#define U64_MAX		UINT64_MAX

#define BIT(bit)	(1UL << (bit))
#define BIT_ULL(bit)	(1ULL << (bit))

#ifndef NSEC_PER_SEC
#define NSEC_PER_SEC	1000000000LL
#define NSEC_PER_MSEC	1000000LL
#define NSEC_PER_USEC	1000LL
#endif

#define likely(condition)	__builtin_expect(!!(condition), 1)
#define unlikely(condition)	__builtin_expect(!!(condition), 0)
#define noinline		__attribute__((noinline))

#define min_t(type, a, b) ({			\
	type min_a = (a), min_b = (b);		\
						\
	min_a < min_b ? min_a : min_b;		\
})
#define max_t(type, a, b) ({			\
	type max_a = (a), max_b = (b);		\
						\
	max_a > max_b ? max_a : max_b;		\
})
#define clamp_t(type, value, low, high)	\
	min_t(type, max_t(type, value, low), high)
#define min(a, b) ({				\
	__auto_type min_a = (a);		\
	__auto_type min_b = (b);		\
						\
	min_a < min_b ? min_a : min_b;		\
})
#define max(a, b) ({				\
	__auto_type max_a = (a);		\
	__auto_type max_b = (b);		\
						\
	max_a > max_b ? max_a : max_b;		\
})

#undef abs
#define abs(value) ({					\
	__typeof__(value) abs_of = (value);		\
							\
	abs_of < 0 ? -abs_of : abs_of;			\
})

static inline int fls64(u64 value)
{
	return value ? 64 - __builtin_clzll(value) : 0;
}

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

static inline u64 mul_u64_u32_shr(u64 a, u32 b, unsigned int shift)
{
	return (__uint128_t)a * b >> shift;
}

static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int shift)
{
	return (__uint128_t)a * b >> shift;
}

#endif
