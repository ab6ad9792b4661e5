# SPDX-License-Identifier: GPL-2.0
#
# One entry to everything; `make help` explains it.

MAKEFLAGS += --no-print-directory

# Debian keeps tc, depmod, dkms and others there, where the login shell of a
# normal user does not look. $(shell) does not see exported variables.
sbin := PATH="$$PATH:/usr/local/sbin:/usr/sbin:/sbin"
export PATH := $(PATH):/usr/local/sbin:/usr/sbin:/sbin

VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
PYTHON ?= /usr/bin/python3

# Where things are built, and where results of the demo go.
O ?= build
override O := $(abspath $(O))
CACHE := $(or $(TOLLWAY_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/tollway)
RESULTS ?= $(CACHE)/results

# The kernel to build modules for, and words for its make, such as ARCH=um.
KDIR ?= /lib/modules/$(shell uname -r)/build
KBUILD_ARGS ?=
# Not kernel.release, which lacks the ABI's number in headers of Debian.
KRELEASE = $(shell sed -n 's/.* UTS_RELEASE "\(.*\)"/\1/p' \
		"$(KDIR)/include/generated/utsrelease.h" 2> /dev/null)
# The modules are the folders with a Kbuild.
MODULES := $(sort $(patsubst %/Kbuild,%,$(wildcard sch_*/Kbuild tcp_*/Kbuild)))
KO := $(foreach module,$(MODULES),$(O)/modules/$(module)/$(module).ko)

# Where things are installed.
PREFIX ?= /usr/local
MANDIR ?= $(PREFIX)/share/man
MODDIR ?= /lib/modules/$(KRELEASE)/updates
# The directory of plugins that is compiled into the installed tc.
TC_LIB_DIR ?= $(or $(shell $(sbin); \
		grep -aoEm1 '/[[:alnum:]_/.-]+/tc/' "$$(command -v tc)" \
		2> /dev/null | sed 's,/$$,,'),/usr/lib/tc)
PAGES := $(notdir $(wildcard tools/man/*.[1-8]))
DKMS = $(if $(DESTDIR),,$(shell $(sbin) command -v dkms))
DKMS_SOURCE := /usr/src/tollway-$(VERSION)
PROGRAMS := tollway tollway-admit tollway-traffic tollway-qsample
UNIT := tollway-admit@.service
UNITDIR ?= $(PREFIX)/lib/systemd/system
PLUGINS := $(patsubst tools/%.c,%.so,$(wildcard tools/q_*.c))
TOOL_FILES = $(foreach page,$(PAGES),"$(MANDIR)/man$(subst .,,$(suffix $(page)))/$(page)") \
	$(foreach plugin,$(PLUGINS),"$(TC_LIB_DIR)/$(plugin)") \
	$(foreach program,$(PROGRAMS),"$(PREFIX)/bin/$(program)") \
	"$(UNITDIR)/$(UNIT)" \
	"$(PREFIX)/lib/tollway"

# The kernel's make takes O= and more for its own: hand nothing on.
plainly := env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL

# Give up with one sentence.
fail = { echo "make $@: $(1)" >&2; exit 1; }

# Give up where some of these files are those of installed packages: only dpkg
# may replace or remove them.
not_of_packages = $(if $(DESTDIR),,owners=$$(dpkg -S $(1) 2> /dev/null | \
	sed -n 's,: /.*,,p' | sort -u | paste -s -d ' ' -); \
	[ -z "$$owners" ] || $(call fail,these files belong to installed packages: \
		remove them first with apt purge $$owners))

help: ## print this text (also the default)
	@echo "Tollway $(VERSION). Targets:"
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | \
		while IFS="$$(printf '\t')" read -r target text; do \
			printf '  %-19s%s\n' "$$target" "$$text"; \
		done
	@echo "Variables (make TARGET NAME=value):"
	@sed -n 's/^# \([A-Z_]*=.*\)/  \1/p' Makefile

# KDIR=DIR           kernel to build modules for [that of the running kernel]
# KBUILD_ARGS=WORDS  words for that kernel's make, such as LLVM=1
# O=DIR              where modules and tools are built [build]
# PREFIX=DIR         where to install [/usr/local]
# DESTDIR=DIR        prefix of every installed path, for packages
# TC_LIB_DIR=DIR     where tc looks for plugins [that of the installed tc]
# RESULTS=DIR        directory for the results of make demo [results in the cache]
# TESTS=WORDS        tests of make check, words for pytest [selftests]
# JOBS=N             files of tests that run at the same time [cores]
# RESUME=1           make check-full runs only the files whose inputs have changed
# TOLLWAY_CACHE=DIR  directory for built kernels, modules and tools [~/.cache/tollway]
# KERNELS=WORDS      kernels of make check-kernels and make smoke, such as "6.1 newest"
# KERNEL_SRC=DIR     source of the kernel of the lab [package linux-source]

demo: dependencies ## install missing packages, run the experiment of CP05 4.3.1 and print the path of its report
	$(plainly) scripts/tollway run double-bottleneck --cc sbrm --aqm sbrm \
		--out "$(RESULTS)/double-bottleneck"

# The same flows and links with four combinations; 36 flows have weights of 1, 2
# and 4 where the congestion control knows weights.
PICTURE := build/picture
picture_run = $(plainly) scripts/tollway run double-bottleneck --duration 30
picture: dependencies ## make scripts/images/double-bottleneck.svg, the picture of the README, from four runs (3 minutes)
	rm -rf $(PICTURE)
	$(picture_run) --aqm delay --out $(PICTURE)/sbrm-delay
	$(picture_run) --cc cubic --aqm fq_codel --out $(PICTURE)/cubic-fq_codel
	$(picture_run) --cc bbr --aqm fq --out $(PICTURE)/bbr-fq
	$(picture_run) --cc dctcp --aqm "codel ce_threshold 1ms ecn" \
		--out $(PICTURE)/dctcp-codel
	$(plainly) scripts/tollway report $(PICTURE)
	install -D -m 644 $(PICTURE)/figures/double-bottleneck-side-by-side.svg \
		scripts/images/double-bottleneck.svg

TESTS ?= selftests
# One lab is one core's work: a file of tests for each core at a time.
JOBS ?= $(shell nproc)
PYTEST = $(PYTHON) -m pytest -n $(JOBS) --dist loadfile \
	--durations=25 --durations-min=20
check: dependencies-check ## install missing packages, run all tests in their short forms
	$(plainly) scripts/tollway lab build
	$(plainly) $(PYTEST) $(TESTS)

check-full: dependencies-check ## run all tests in their extended forms, those of the lab also on the debug kernel (some hours)
	$(plainly) $(PYTHON) selftests/full.py --jobs $(JOBS) \
		$(if $(RESUME),--resume) $(TESTS)

bench: dependencies ## measure cycles per packet and per ACK beside the kernel's own modules, and the wall time of an experiment
	$(plainly) scripts/bench --out "$(RESULTS)/bench"

check-kernels: dependencies-check ## build the modules for 5.10, 6.1, 6.12 and the newest kernel, with gcc and clang
	$(plainly) scripts/check-kernels $(KERNELS)

smoke: dependencies-check ## boot stock kernels in qemu (6.1 and the newest) and run checks there
	$(plainly) sh -e -c 'for kernel in $(or $(KERNELS),6.1 newest); do \
		scripts/tollway run smoke --on qemu --kernel $$kernel; done'

lab: dependencies ## build the kernel, modules and tools of the lab
	$(plainly) scripts/tollway lab build

modules: ## build the kernel modules in $O/modules
	@[ -e "$(KDIR)/Makefile" ] || $(call fail,there is no kernel to build for \
		in $(KDIR): install the package linux-headers-$(shell uname -r) or set KDIR)
	@command -v $(firstword $(CC)) > /dev/null || \
		$(call fail,there is no compiler: install the package gcc)
	$(plainly) scripts/build-modules.sh "$(KDIR)" "$(O)/modules" $(KBUILD_ARGS)

tools: ## build the traffic generator, the sampler and the plugins of tc in $O/tools
	@command -v $(firstword $(CC)) > /dev/null || \
		$(call fail,there is no compiler: install the packages gcc and libc6-dev)
	@$(MAKE) -s -C tools O="$(O)/tools"

install: install-modules install-tools ## install modules, tools, tollway and manual pages (as root, or with DESTDIR=)

# By hand, not by a dependency on modules: DKMS builds its own.
install-modules: ## install the modules: with DKMS if it is installed, otherwise in /lib/modules/VERSION/updates
ifneq ($(DKMS),)
	@$(call not_of_packages,$(DKMS_SOURCE))
	@[ -n "$(KRELEASE)" ] || $(call fail,there is no kernel to build for \
		in $(KDIR): install the package linux-headers-$(shell uname -r) or set KDIR)
	@$(MAKE) dkms-source
	$(DKMS) install --force tollway/$(VERSION) -k $(KRELEASE) \
		--kernelsourcedir "$(KDIR)"
else
	@$(MAKE) modules
	install -d "$(DESTDIR)$(MODDIR)"
	install -m 644 $(KO) "$(DESTDIR)$(MODDIR)"
ifeq ($(DESTDIR),)
	depmod $(KRELEASE)
endif
endif

dkms-source: ## install the sources of the modules for DKMS
	rm -rf "$(DESTDIR)$(DKMS_SOURCE)"
	install -d "$(DESTDIR)$(DKMS_SOURCE)"
	tar -c --exclude=__pycache__ dkms.conf include $(MODULES) \
		scripts/build-modules.sh | \
		tar -x --no-same-owner -C "$(DESTDIR)$(DKMS_SOURCE)"

install-tools: tools ## install the tools, the plugins of tc, tollway and manual pages
	@$(call not_of_packages,$(TOOL_FILES))
	@$(MAKE) -s -C tools install O="$(O)/tools" DESTDIR="$(DESTDIR)" \
		PREFIX="$(PREFIX)" MANDIR="$(MANDIR)" TC_LIB_DIR="$(TC_LIB_DIR)"
	for page in $(PAGES); do \
		install -D -m 644 tools/man/$$page \
			"$(DESTDIR)$(MANDIR)/man$${page##*.}/$$page" || exit; \
	done
# The lab builds modules and tools out of what lies beside the command.
	rm -rf "$(DESTDIR)$(PREFIX)/lib/tollway"
	install -d "$(DESTDIR)$(PREFIX)/lib/tollway" "$(DESTDIR)$(PREFIX)/bin"
	tar -c --exclude=__pycache__ --exclude='*.o' --exclude=tools/debian \
		--exclude=scripts/images \
		include $(MODULES) scripts tools examples \
		$(wildcard selftests/kunit) \
		LICENSE | \
		tar -x --no-same-owner -C "$(DESTDIR)$(PREFIX)/lib/tollway"
	ln -sf ../lib/tollway/scripts/tollway "$(DESTDIR)$(PREFIX)/bin/tollway"
	ln -sf ../lib/tollway/tools/tollway-admit \
		"$(DESTDIR)$(PREFIX)/bin/tollway-admit"
	install -d "$(DESTDIR)$(UNITDIR)"
	sed 's,@PREFIX@,$(PREFIX),' "tools/$(UNIT)" > "$(DESTDIR)$(UNITDIR)/$(UNIT)"

uninstall: ## remove what make install installed
	@$(call not_of_packages,$(TOOL_FILES) $(if $(DKMS),$(DKMS_SOURCE)))
	rm -rf "$(DESTDIR)$(PREFIX)/lib/tollway"
	cd "$(DESTDIR)$(PREFIX)/bin" 2> /dev/null && \
		rm -f $(PROGRAMS) || true
	rm -f $(foreach page,$(PAGES),"$(DESTDIR)$(MANDIR)/man$(subst .,,$(suffix $(page)))/$(page)")
	rmdir $(foreach section,$(sort $(suffix $(PAGES))),"$(DESTDIR)$(MANDIR)/man$(subst .,,$(section))") \
		2> /dev/null || true
	rm -f $(foreach plugin,$(PLUGINS),"$(DESTDIR)$(TC_LIB_DIR)/$(plugin)")
	rm -f "$(DESTDIR)$(UNITDIR)/$(UNIT)"
	rmdir "$(DESTDIR)$(UNITDIR)" "$(DESTDIR)$(abspath $(UNITDIR)/..)" \
		2> /dev/null || true
ifneq ($(DKMS),)
	-$(DKMS) remove tollway/$(VERSION) --all
	rm -rf $(DKMS_SOURCE)
endif
ifneq ($(KRELEASE),)
	rm -f $(foreach module,$(MODULES),"$(DESTDIR)$(MODDIR)/$(module).ko")
	rmdir "$(DESTDIR)$(MODDIR)" 2> /dev/null || true
ifeq ($(DESTDIR),)
	depmod $(KRELEASE)
endif
endif

# dpkg-buildpackage wants its debian/ at the top of a tree named after it.
deb: dependencies-deb ## build the Debian packages tollway-dkms and tollway-tools in $O/deb
	rm -rf "$(O)/deb"
	install -d "$(O)/deb/tollway-$(VERSION)"
	tar -c --exclude=__pycache__ --exclude='*.o' --exclude=tools/debian \
		--exclude=scripts/images \
		Makefile dkms.conf include $(MODULES) scripts tools examples \
		$(wildcard selftests/kunit) LICENSE | \
		tar -x --no-same-owner -C "$(O)/deb/tollway-$(VERSION)"
	cp -R tools/debian "$(O)/deb/tollway-$(VERSION)"
	cd "$(O)/deb/tollway-$(VERSION)" && \
		$(plainly) dpkg-buildpackage --build=binary --no-sign
	rm -rf "$(O)/deb/tollway-$(VERSION)"
	@ls "$(O)"/deb/*.deb

clean: ## remove what was built here, but not the cache of the lab
	rm -rf "$(O)/modules" "$(O)/tools" "$(O)/deb" build/pytest \
		$(PICTURE)
	find scripts selftests -name __pycache__ -exec rm -rf {} +

dependencies: ## install the missing packages that make demo needs
	@scripts/install-dependencies demo

dependencies-check: ## the same for make check
	@scripts/install-dependencies check

dependencies-deb: ## the same for make deb
	@scripts/install-dependencies deb

.PHONY: help demo picture check check-full bench check-kernels smoke lab modules \
	tools install install-modules dkms-source install-tools uninstall deb clean \
	dependencies dependencies-check dependencies-deb
