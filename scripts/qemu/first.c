// SPDX-License-Identifier: GPL-2.0
/*
 * First program of a distribution's kernel in qemu: loads the modules that
 * places/qemu.py has put beside it, mounts the host's root read-only (9p) and
 * runs the command that it is given there. Nothing else is in the initramfs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NINE_P	"trans=virtio,version=9p2000.L,msize=524288,cache=loose"

static void fail(const char *what)
{
	printf("BUG: first: %s: %s\n", what, strerror(errno));
	fflush(stdout);
	reboot(RB_POWER_OFF);
	exit(1);
}

/* Modules are called 00.ko, 01.ko and so on, in the order of loading. */
static void load_modules(void)
{
	char name[16];
	int i, fd;

	for (i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "/%02d.ko", i);
		fd = open(name, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return;
		if (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST)
			fail(name);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	(void)argc;
	load_modules();
	if (mount("root", "/root", "9p", MS_RDONLY, NINE_P))
		fail("mount root");
	/* Over the initramfs: a namespace that is entered begins at its top. */
	if (chdir("/root") || mount(".", "/", NULL, MS_MOVE, NULL) ||
	    chroot("."))
		fail("chroot");
	argv[0] = "/bin/sh";
	execv(argv[0], argv);
	fail(argv[0]);
	return 1;
}
