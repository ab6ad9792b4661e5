// SPDX-License-Identifier: GPL-2.0
/*
 * Stands between tc and the kernel (LD_PRELOAD), so that a plugin is tested
 * inside the real tc, without the qdisc and without privileges:
 *
 * - a request for a new qdisc goes to the file STUB_REQUEST and ends tc;
 * - a request for a dump of qdiscs is answered from the file STUB_REPLY, a
 *   sequence of netlink messages that ends with NLMSG_DONE.
 *
 * Everything else reaches the kernel.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

static __u32 dump_seq;
static bool dumping;

static void capture(const struct msghdr *msg)
{
	int fd = open(getenv("STUB_REQUEST"), O_WRONLY | O_CREAT | O_TRUNC,
		      0600);
	ssize_t n = writev(fd, msg->msg_iov, msg->msg_iovlen);

	_exit(n > 0 ? 0 : 99);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	ssize_t (*next)(int fd, const struct msghdr *msg, int flags) =
		dlsym(RTLD_NEXT, "sendmsg");
	const struct nlmsghdr *n = msg->msg_iov[0].iov_base;

	if (n->nlmsg_type == RTM_NEWQDISC)
		capture(msg);
	if (n->nlmsg_type == RTM_GETQDISC) {
		dump_seq = n->nlmsg_seq;
		dumping = true;
		return n->nlmsg_len;
	}
	return next(fd, msg, flags);
}

/* To the one who asked, as answers to the dump. */
static void address(int fd, char *reply, int len)
{
	struct sockaddr_nl self;
	socklen_t self_len = sizeof(self);
	struct nlmsghdr *n;

	getsockname(fd, (struct sockaddr *)&self, &self_len);
	for (n = (struct nlmsghdr *)reply; NLMSG_OK(n, (unsigned int)len);
	     n = NLMSG_NEXT(n, len)) {
		n->nlmsg_seq = dump_seq;
		n->nlmsg_pid = self.nl_pid;
	}
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	ssize_t (*next)(int fd, struct msghdr *msg, int flags) =
		dlsym(RTLD_NEXT, "recvmsg");
	static char reply[16384] __attribute__((aligned(NLMSG_ALIGNTO)));
	size_t room = msg->msg_iov[0].iov_len;
	ssize_t len;
	int file;

	if (!dumping)
		return next(fd, msg, flags);

	file = open(getenv("STUB_REPLY"), O_RDONLY);
	len = read(file, reply, sizeof(reply));
	close(file);
	if (len <= 0)
		_exit(98);

	address(fd, reply, len);
	memset(msg->msg_name, 0, msg->msg_namelen);
	((struct sockaddr_nl *)msg->msg_name)->nl_family = AF_NETLINK;
	msg->msg_flags = 0;
	if (room)
		memcpy(msg->msg_iov[0].iov_base, reply,
		       room < (size_t)len ? room : (size_t)len);
	return len;
}
