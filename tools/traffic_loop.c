// SPDX-License-Identifier: GPL-2.0
/*
 * The event loop: epoll, one timer, and signals that end the run.
 *
 * To wait for sockets takes one system call; a new deadline takes one more. This file
 * never reads the clock: the timer has absolute times, and when it fires, the deadline
 * has passed. The timer is edge triggered, so its count is not read either: setting the
 * timer again clears it.
 */
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "traffic.h"

/* The longest sleep during which a signal may go unnoticed (see below). */
#define PLAIN_SLEEP_NS	(100 * NSEC_PER_MSEC)

volatile sig_atomic_t loop_stop_signal;
static int loop_wake_fd = -1;

/* Also wakes epoll, so that a signal just before epoll_wait() is not lost. */
static void on_stop_signal(int number)
{
	uint64_t one = 1;
	int saved = errno;

	loop_stop_signal = number;
	if (write(loop_wake_fd, &one, sizeof(one)) < 0)
		errno = 0;	/* the counter is full: awake already */
	errno = saved;
}

void loop_add(struct loop *loop, int fd, uint32_t events, void *owner)
{
	struct epoll_event event = { .events = events, .data.ptr = owner };

	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event))
		die(STATUS_FAILED, "epoll_ctl: %s", strerror(errno));
	loop->sockets++;
}

void loop_modify(struct loop *loop, int fd, uint32_t events, void *owner)
{
	struct epoll_event event = { .events = events, .data.ptr = owner };

	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, fd, &event))
		die(STATUS_FAILED, "epoll_ctl: %s", strerror(errno));
}

/* Close a descriptor that was added; this also removes it from epoll. */
void loop_close(struct loop *loop, int fd)
{
	close(fd);
	loop->sockets--;
}

void loop_open(struct loop *loop, int64_t rest_ns)
{
	struct sigaction action = { .sa_handler = on_stop_signal };

	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	loop_wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->epoll_fd < 0 || loop->timer_fd < 0 || loop_wake_fd < 0)
		die(STATUS_FAILED, "cannot make the event loop: %s",
		    strerror(errno));
	loop->armed_ns = TIME_NEVER;
	loop->last_due_ns = 0;
	loop->rest_ns = rest_ns;
	loop->looked_ns = 0;
	loop_add(loop, loop->timer_fd, EPOLLIN | EPOLLET, &loop->timer_fd);
	loop_add(loop, loop_wake_fd, EPOLLIN, &loop_wake_fd);
	loop->sockets = 0;

	/* clock_nanosleep() may be late by the slack: 50 us by default. */
	prctl(PR_SET_TIMERSLACK, 1);
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
}

/*
 * Without a socket to wait for (UDP without replies only), one call sleeps, instead of
 * two that set a timer and wait for it. If a signal arrives after the caller has checked
 * loop_stop_signal, the sleep does not end early, so it must be short.
 */
static bool loop_sleep(struct loop *loop, int64_t deadline_ns)
{
	struct timespec until = ns_to_timespec(deadline_ns);

	if (loop->sockets || deadline_ns - loop->last_due_ns > PLAIN_SLEEP_NS)
		return false;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	return true;
}

/*
 * Do not wait for sockets for some time after the last events, so that the next call
 * finds events of many of them. With thousands of connections, waking up for each one
 * costs more than the work for it. The deadline is kept.
 */
static void loop_rest(const struct loop *loop, int64_t deadline_ns)
{
	int64_t until_ns = loop->looked_ns + loop->rest_ns;
	struct timespec until = ns_to_timespec(until_ns < deadline_ns ?
					       until_ns : deadline_ns);

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/*
 * Wait for an event. Returns the number of @events of sockets; *due is true if
 * @deadline_ns (TIME_NEVER: none) has passed. After a signal the number may be 0 and
 * *due false.
 */
int loop_wait(struct loop *loop, struct epoll_event *events, int room,
	      int64_t deadline_ns, bool *due)
{
	int count, kept = 0, i;

	*due = false;
	if (loop_stop_signal)
		return 0;
	if (deadline_ns != TIME_NEVER && loop_sleep(loop, deadline_ns)) {
		loop->last_due_ns = deadline_ns;
		*due = !loop_stop_signal;
		return 0;
	}
	if (deadline_ns != loop->armed_ns) {
		struct itimerspec setting = { 0 };

		/* All zero would disarm, which only TIME_NEVER asks for. */
		if (deadline_ns != TIME_NEVER)
			setting.it_value =
				ns_to_timespec(deadline_ns > 0 ?
					       deadline_ns : 1);
		timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &setting,
				NULL);
		loop->armed_ns = deadline_ns;
	}

	if (loop->rest_ns)
		loop_rest(loop, deadline_ns);
	count = epoll_wait(loop->epoll_fd, events, room, -1);
	if (count < 0 && errno != EINTR)
		die(STATUS_FAILED, "epoll_wait: %s", strerror(errno));
	/* If there may be more events, do not delay them. */
	if (loop->rest_ns && count < room)
		loop->looked_ns = clock_ns();
	for (i = 0; i < count; i++) {
		if (events[i].data.ptr == &loop->timer_fd) {
			*due = true;
			loop->last_due_ns = deadline_ns;
			loop->armed_ns = TIME_NEVER;
		} else if (events[i].data.ptr != &loop_wake_fd) {
			events[kept++] = events[i];
		}
	}
	return kept;
}
