// SPDX-License-Identifier: GPL-2.0
/*
 * Slow down programs that poll, in a kernel where computation takes no time.
 *
 * While iperf3's client waits for a word on its control connection it asks in a
 * loop whether its data socket is writable, which it is. On a machine that
 * wastes a processor. In the lab a turn of the loop takes half a microsecond of
 * virtual time and fifty of real time, and a word that was lost takes a second.
 *
 * Preloaded, this makes every turn after the first hundred that did not have to
 * wait take 100 us, as a slow processor would.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <sys/select.h>
#include <time.h>

#define TURNS_MAX	100
#define PAUSE_NS	100000

int select(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
	   struct timeval *timeout)
{
	static int (*wait_for)(int nfds, fd_set *readfds, fd_set *writefds,
			       fd_set *exceptfds, struct timeval *timeout);
	static unsigned int turns;
	struct timespec pause = { .tv_nsec = PAUSE_NS };
	fd_set read_now, write_now, except_now;
	struct timeval now = { 0 };

	if (!wait_for)
		*(void **)&wait_for = dlsym(RTLD_NEXT, "select");

	if (readfds)
		read_now = *readfds;
	if (writefds)
		write_now = *writefds;
	if (exceptfds)
		except_now = *exceptfds;
	if (wait_for(nfds, readfds ? &read_now : NULL,
		     writefds ? &write_now : NULL,
		     exceptfds ? &except_now : NULL, &now) > 0) {
		if (++turns > TURNS_MAX)
			nanosleep(&pause, NULL);
	} else {
		turns = 0;
	}
	return wait_for(nfds, readfds, writefds, exceptfds, timeout);
}
