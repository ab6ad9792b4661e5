// SPDX-License-Identifier: GPL-2.0
/*
 * Slow down programs that poll, in a kernel where computation takes no time.
 *
 * While the client of iperf3 waits for a message on its control connection, it calls
 * select() in a loop, which returns at once because its data socket is writable. On a
 * host this wastes a processor. In the lab one iteration takes 0.5 us of virtual time and
 * 50 us of real time, and a lost message takes a second.
 *
 * This library is preloaded. From the 100th call on that returns at once, each call takes
 * 100 us, as on a slow processor.
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
