# cejail.  One file, readable top to bottom; a build variant is one line.
#
#	make demo      install what the build needs, build, show a jail
#	make check     install what the short tests need, then run them
#	make help      every target

VERSION := 0.1.0
VARIANT ?= release
CC      ?= cc
OUT     := build/$(VARIANT)$(if $(filter clang%,$(notdir $(CC))),-clang)
PREFIX  ?= /usr/local
# The programs look for $(PREFIX)/libexec/cejail and $(PREFIX)/share/cejail beside their own folder.
BINDIR  ?= $(PREFIX)/bin
MANDIR  ?= $(PREFIX)/share/man
DOCDIR  ?= $(PREFIX)/share/doc/cejail
UNITDIR ?= $(PREFIX)/lib/systemd/system
USERUNITDIR ?= $(PREFIX)/lib/systemd/user
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR  ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
APPARMORDIR ?= /etc/apparmor.d
# BWRAP=yes: install also makes a link called bwrap, for programs that look for it in PATH.
BWRAPDIR ?= $(PREFIX)/lib/cejail/bwrap
$(if $(filter $(BINDIR:$(PREFIX)/%=%),$(notdir $(BINDIR))),,$(error BINDIR must be a folder in PREFIX, '$(PREFIX)': the programs look for ../libexec/cejail))
# A developer's build: a warning is an error.  A release's tarball is no git checkout.
WERROR  ?= $(if $(wildcard .git),-Werror)
# STATIC=no: with shared libraries, where the distribution has no archives of them.
STATIC  ?= yes
# APPARMOR=yes: install also puts the profile where AppArmor 4.0 and later loads it; APPARMOR=3.0: without what older
# ones do not know.  LD_PRELOAD would run any code under the profile of a program with shared libraries.
$(if $(filter-out yes 3.0,$(APPARMOR)),$(error unknown APPARMOR '$(APPARMOR)'; there are yes and 3.0))
$(if $(and $(APPARMOR),$(filter no,$(STATIC))),$(error APPARMOR is for a static program: remove STATIC=no))
PKGS    := libseccomp libcap yajl libnl-route-3.0 libmnl libarchive
IS_CLANG := $(findstring clang,$(shell $(CC) --version 2>/dev/null))
WARN     = -Wall -Wextra -Wshadow -Wvla -Wformat=2 -Wstrict-prototypes -Wmissing-prototypes \
	   -Walloca -Wpointer-arith -Wwrite-strings -Wno-missing-field-initializers $(WERROR) \
	   -Wundef -Wconversion -Wno-sign-conversion -Wimplicit-fallthrough -Wnull-dereference \
	   -Wredundant-decls -Wnested-externs -Wold-style-definition -Wfloat-equal -Wdouble-promotion \
	   -Wunused-macros $(if $(IS_CLANG),$(WARN.clang),$(WARN.gcc))
WARN.gcc := -Wduplicated-cond -Wduplicated-branches -Wlogical-op -Wformat-signedness -Wtrampolines \
	    -Wjump-misses-init -Wunused-const-variable=2
# assert(!"a sentence") is how an impossible state speaks
WARN.clang := -Wconditional-uninitialized -Wunreachable-code -Wassign-enum -Wunused-const-variable \
	      -Wno-string-conversion

# Sections, so that what a program does not call is not in it.
FLAGS.release  := -O2 -g $(if $(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),,-D_FORTIFY_SOURCE=2) \
		  -fstack-protector-strong -fPIE -ffunction-sections -fdata-sections -ffile-prefix-map=$(CURDIR)=.
LINK.release   := -pie -Wl,-z,relro,-z,now -Wl,--as-needed -Wl,--gc-sections
# To load shared libraries would cost a run 0.3 ms: the launcher has none, and the service only libc.
ARCHIVES       := $(if $(filter no,$(STATIC)),,-lseccomp -lcap -lyajl_s -lnl-route-3 -lnl-3)
comma          := ,
archived        = $(if $(ARCHIVES),-Wl$(comma)-Bstatic $1 -Wl$(comma)-Bdynamic,$1)
STATIC.release := $(if $(ARCHIVES),$(call archived,$(ARCHIVES)))
LAUNCH.release := $(ARCHIVES)
# By clang the code also tells a fuzzer which way it took.
FLAGS.asan     := -O1 $(if $(IS_CLANG),-gline-tables-only,-g) -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer \
		  $(if $(IS_CLANG),-fsanitize=fuzzer-no-link)
# The sanitizers' many symbols: three times as fast by lld, where it is installed.
LINK.asan      := $(if $(IS_CLANG),$(if $(shell command -v ld.lld),-fuse-ld=lld))
# Counters in a file that forks share and no end of a process can lose: tests/cover/counters.c.
COUNTERS       ?= $(CURDIR)/build/counters
FLAGS.coverage := -O0 -g -fprofile-instr-generate=/dev/null -fcoverage-mapping -mllvm -runtime-counter-relocation \
		  -Wno-unused-command-line-argument -DCOVERAGE_DIR='"$(COUNTERS)"'
$(if $(FLAGS.$(VARIANT)),,$(error unknown VARIANT '$(VARIANT)'; there are release, asan, coverage))

INC     := -I. -D_GNU_SOURCE -include runtime/base/prelude.h \
	   -DCJ_VERSION='"$(VERSION)"' -DCJ_DATADIR='"$(PREFIX)/share/cejail"' \
	   $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
LIBS    := $(shell pkg-config --libs $(PKGS) 2>/dev/null)
COMPILE  = $(CC) -std=gnu11 $(INC) $(WARN) $(FLAGS.$(VARIANT)) $(CPPFLAGS) $(CFLAGS) -MMD -MP
LINK     = $(CC) $(FLAGS.$(VARIANT)) $(LINK.$(VARIANT)) $(CFLAGS) $(LDFLAGS)

LIB     := $(OUT)/libcejail.a
# The sources below folders, without the programs' own main.c.
below    = $(filter-out %/main.c,$(sort $(shell find $(1) -name '*.c')))
LIBSRC  := $(call below,runtime/base runtime/kernel rootfs netns profiles runtime/jail runtime/session runtime/run runtime/container runtime/service runtime/front/client runtime/front/bwrap runtime/front/image runtime/front/helpers/upstream runtime/front/mcp)
LIBSRC  += $(if $(filter coverage,$(VARIANT)),tests/cover/counters.c)
CLISRC  := $(call below,runtime/front/cli) runtime/front/cli/main.c
FILTER  := $(OUT)/gen/default_filter.o
PAGE    := $(OUT)/gen/report_page.o
OPENAPI := $(OUT)/gen/openapi.o
MCPTOOL := $(OUT)/gen/mcp_tools.o
OCISHOW := $(OUT)/gen/oci_show.o
MODULES := $(OUT)/gen/tool_modules.o
CEJAIL  := $(OUT)/bin/cejail
HELPERS := $(addprefix $(OUT)/libexec/cejail/,scope-helper name-helper table-helper)
# What parses a jail's packets and queries, without the launcher's memory.
GATEWAY := $(OUT)/libexec/cejail/gateway
SERVER  := $(OUT)/libexec/cejail/serve
# The OCI runtime: static like the launcher, because engines start it several times for a container.
OCI     := $(OUT)/bin/cejail-oci
MCP     := $(OUT)/libexec/cejail/mcp
IMAGE   := $(OUT)/libexec/cejail/image
ORIGIN  := $(OUT)/libexec/cejail/upstream
# Static like the launcher: a harness starts it for each command.
SANDBOX := $(OUT)/libexec/cejail/bwrap
# What a zygote (runtime/jail/zygote/zygote.h) has of ours: the part of the engine that seals.
ZYGOTE  := $(OUT)/libexec/cejail/zygote.so
SEALING := $(addprefix runtime/,base/child.c base/error.c base/step.c base/sys.c base/files/fd.c base/files/system_file.c base/self_status.c base/unix.c \
	   base/arena.c base/text.c base/text_bytes.c $(addprefix kernel/process/,capabilities.c landlock.c privileges.c) \
	   kernel/seccomp/filter.c \
	   jail/init/limits.c \
	   $(addprefix jail/zygote/,main.c zygote_enter.c zygote_pages.c zygote_protocol.c zygote_seal.c zygote_serve.c))
BAKE    := $(OUT)/bin/bake-filter
RANGES  := $(OUT)/bin/print-ranges
TESTS   := $(patsubst %.c,$(OUT)/%,$(sort $(shell find tests -name 'test_*.c')))
PROBES  := $(patsubst %.c,$(OUT)/%,$(wildcard $(addsuffix /*.c,tests/system/probes tests/system/escape/probes tests/system/faults)))
CALLER  := $(addprefix $(OUT)/tests/system/pressure/,caller keeper)
FUZZERS := $(patsubst %.c,$(OUT)/%,$(wildcard tests/fuzz/*/fuzz_*.c))
MANS    := $(wildcard man/*.[1-9])

# One line for each step; V=1 shows the commands, make -s nothing.  With STEPS=N, as `make demo` counts
# them, a line for every 100 of N.
Q       := $(if $(V),,@)
SILENT  := $(findstring s,$(filter-out --%,$(firstword -$(MAKEFLAGS))))
is_due   = $(or $(filter %00,$(words $(DONE))),$(filter $(STEPS),$(words $(DONE))))
count    = $(eval DONE += .)$(if $(is_due),$(info building $(words $(DONE))/$(STEPS)))
say      = $(if $(V)$(SILENT),,$(if $(STEPS),$(count),$(info $(1) $@)))$(Q)

all: $(CEJAIL) $(OCI) $(HELPERS) $(GATEWAY) $(IMAGE) $(ORIGIN) $(SANDBOX) $(SERVER) $(MCP) $(ZYGOTE) ## build the program and its helpers (default)

$(LIB): $(LIBSRC:%.c=$(OUT)/%.o) $(OPENAPI) $(MCPTOOL) $(OCISHOW) $(MODULES)
	@rm -f $@
	$(call say,AR  )$(AR) rcs $@ $^

# The default seccomp filter is compiled here, not when a jail starts: libseccomp
# takes 2 ms for it, loading the result 0.1 ms.
$(BAKE): $(OUT)/tools/bake-filter.o $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK)$(LINK) -o $@ $^ $(LIBS)
$(OUT)/gen/default_filter.c: profiles/seccomp/default.json $(BAKE)
	@mkdir -p $(@D)
	$(call say,GEN )$(EMULATOR) $(BAKE) $< < $< > $@.tmp && mv $@.tmp $@
$(FILTER): $(OUT)/gen/default_filter.c
	$(call say,CC  )$(COMPILE) -c -o $@ $<

# The bytes of files; report_verb.c, mcp_tool.c, oci_show.c and own_file.c name where they begin and end.
$(PAGE): runtime/front/cli/report.html
$(MCPTOOL): runtime/run/mcp/tools.json
$(OCISHOW): runtime/container/oci_show.json
$(MODULES): profiles/tools/tools.py profiles/tools/tools.mjs
$(PAGE) $(MCPTOOL) $(OCISHOW) $(MODULES):
	@mkdir -p $(@D)
	$(call say,GEN )$(LD) -r -b binary -z noexecstack -o $@ $^

# runtime/service/api/api.c names the bytes likewise.
$(OPENAPI:.o=.json): tools/bundle-openapi profiles/schema/openapi.json $(wildcard profiles/schema/*.json)
	@mkdir -p $(@D)
	$(call say,GEN )tools/bundle-openapi profiles/schema/openapi.json > $@.tmp && mv $@.tmp $@
$(OPENAPI): $(OPENAPI:.o=.json)
	$(call say,GEN )cd $(@D) && $(LD) -r -b binary -z noexecstack -o $(@F) $(<F)

$(CEJAIL): $(CLISRC:%.c=$(OUT)/%.o) $(FILTER) $(PAGE) $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK)$(if $(LAUNCH.$(VARIANT)),$(LINK:-pie=-static-pie),$(LINK)) -o $@ $^ $(or $(LAUNCH.$(VARIANT)),$(LIBS))
$(OCI): $(OUT)/runtime/container/main.o $(OUT)/runtime/front/cli/no_plugins.o $(FILTER) $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK)$(if $(LAUNCH.$(VARIANT)),$(LINK:-pie=-static-pie),$(LINK)) -o $@ $^ $(or $(LAUNCH.$(VARIANT)),$(LIBS))
# Dynamic, because they load what the host has: libsystemd, the resolver's plug-ins.
$(HELPERS): $(OUT)/libexec/cejail/%-helper: $(OUT)/runtime/front/helpers/%_main.o $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK)$(LINK) -o $@ $^ $(HELPLIBS)
# Loads rules, with one shared library besides libc: a burst of runs waits for its start.
$(OUT)/libexec/cejail/table-helper: HELPLIBS = $(or $(STATIC.$(VARIANT)),$(LIBS)) -lmnl

# Dynamic, because Debian has no archive of libmnl; bound at its start, before it gives up its rights.
# libnl-route-3 is linked from its archive: a jail's first packet waits for the program, and the shared
# library, which registers all its kinds of objects, would start 0.9 ms later where a start costs 2.5 ms.
$(GATEWAY): $(OUT)/runtime/front/helpers/gateway_main.o $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK)$(LINK) -o $@ $^ $(or $(STATIC.$(VARIANT)),$(LIBS)) -lmnl

# Dynamic, too: libarchive is in no other program of ours.
$(IMAGE): $(OUT)/runtime/front/image/main.o $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK)$(LINK) -o $@ $^ $(LIBS)

# So is libcurl, which loads a library for TLS.
$(ORIGIN): $(OUT)/runtime/front/helpers/upstream/main.o $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK)$(LINK) -o $@ $^ $(or $(STATIC.$(VARIANT)),$(LIBS)) -lcurl

$(SANDBOX): $(OUT)/runtime/front/bwrap/main.o $(OUT)/runtime/front/cli/no_plugins.o $(FILTER) $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK)$(if $(LAUNCH.$(VARIANT)),$(LINK:-pie=-static-pie),$(LINK)) -o $@ $^ $(or $(LAUNCH.$(VARIANT)),$(LIBS))

# The service is a program of its own: its code would cost every run.
$(SERVER): $(OUT)/runtime/service/main.o $(FILTER) $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK)$(LINK) -o $@ $(filter %.o,$^) $(LIB) $(or $(STATIC.$(VARIANT)),$(LIBS))

$(MCP): $(OUT)/runtime/front/mcp/main.o $(FILTER) $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK)$(LINK) -o $@ $(filter %.o,$^) $(LIB) $(or $(STATIC.$(VARIANT)),$(LIBS))

# Loaded into an interpreter, where only fork(3) may replace a function; so no sanitizer, either.
$(ZYGOTE): $(SEALING:%.c=$(OUT)/pic/%.o) runtime/jail/zygote/exports
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) -shared -Wl,-z,relro,-z,now,-z,defs,--gc-sections,--exclude-libs=ALL,--version-script=runtime/jail/zygote/exports \
		$(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(call archived,-lcap)
$(OUT)/pic/%.o: FLAGS.$(VARIANT) := $(FLAGS.release) -fPIC -fvisibility=hidden
$(OUT)/pic/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC  )$(COMPILE) -c -o $@ $<

$(OUT)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC  )$(COMPILE) -c -o $@ $<
# Those that name CJ_DATADIR.
$(OUT)/profiles/profile_dirs.o $(OUT)/runtime/service/config/serve_options.o: $(OUT)/gen/prefix
$(OUT)/gen/prefix: FORCE
	@mkdir -p $(@D)
	@echo '$(PREFIX)' | cmp -s - $@ || echo '$(PREFIX)' > $@
# Tests compile in a third of the time without optimization.
$(TESTS:%=%.o): FLAGS.$(VARIANT) += -O0 -U_FORTIFY_SOURCE
-include $(shell find $(OUT) -name '*.d' 2>/dev/null)

# --- tests ------------------------------------------------------------------

# A test may wrap system calls: the functions after "WRAP:" in its source.
WRAPPED = $$(sed -n 's|^/\* WRAP: \(.*\) \*/|\1|p' $*.c | sed 's/[^ ][^ ]*/-Wl,--wrap=&/g')
$(TESTS): $(OUT)/%: $(OUT)/%.o $(FILTER) $(LIB)
	$(call say,LINK)$(LINK) $(WRAPPED) -o $@ $^ $(LIBS) -lcmocka
$(filter $(OUT)/tests/front/helpers/%,$(TESTS)): LIBS += -lcurl
$(filter $(OUT)/tests/jail/zygote/%,$(TESTS)): | $(ZYGOTE)
$(filter $(OUT)/tests/netns/% $(OUT)/tests/jail/%,$(TESTS)): | $(GATEWAY)
$(PROBES): $(OUT)/%: %.c tests/patience.h $(wildcard tests/system/escape/probes/*.h tests/system/faults/*.h)
	@mkdir -p $(@D)
	$(call say,CC  )$(CC) -std=gnu11 -D_GNU_SOURCE -I. -O1 -Wall -Wextra -Werror -o $@ $<
$(FUZZERS): $(OUT)/%: $(OUT)/%.o $(FILTER) $(LIB)
	$(call say,LINK)$(CC) $(FLAGS.$(VARIANT)) $(LINK.$(VARIANT)) -fsanitize=fuzzer $(WRAPPED) -o $@ $^ $(LIBS)

unit:                            ## unit tests of this variant, built and run side by side
	@$(MAKE) --no-print-directory $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$$(nproc)) -s $(TESTS)
	@tests/unit $(notdir $(OUT)) $(OUT) | awk '/^[a-zA-Z]/{ n[$$1]++; show = $$1 != "pass" && $$1 != "took" } show; \
		END { printf "%d passed, %d failed, %d skipped\n", n["pass"], n["FAIL"], n["skip"]; exit n["FAIL"] > 0 || !n["pass"] }'
test:                            ## the tests that words name: make test T=json, T=limits, T="fork bomb"
	@OUT=$(OUT) tests/one $(T)
compile_commands.json: Makefile  ## how each source is compiled, for clangd and other editors' tools
	@$(MAKE) -nB V=1 all $(TESTS) | tools/compile-commands > $@
# The table of closed destinations, for tests that try its rows or read the manual.
$(RANGES): $(addprefix $(OUT)/,tools/print-ranges.o netns/address/ranges.o netns/address/ip.o)
	@mkdir -p $(@D)
	$(call say,LINK)$(LINK) -o $@ $^
# A process that lives long and uses the engine, as a service does, and the keeper of one session.
$(CALLER): %: %.o $(FILTER) $(LIB)
	$(call say,LINK)$(LINK) -o $@ $^ $(or $(STATIC.$(VARIANT)),$(LIBS))
probes: $(PROBES) $(RANGES) $(CALLER)
fuzzers: $(FUZZERS)              ## build the fuzzers (make fuzzers VARIANT=asan CC=clang)

check:                           ## the tests in their short form: lint, unit tests, system tests as root and as a user
	tools/setup check
	tests/check

check-all:                       ## all tests: also sanitizers, static tools, a container, a service, virtual machines
	tools/setup machines
	tests/check all

budget-update:                   ## count the system calls and page faults of plain runs anew (as root): budget.txt
	{ tests/one budget; CEJAIL_TEST_ONLY=budget tests/check machine; } | python3 tests/system/core/budget.py

proof:                           ## every proof in full, and a table: tried, held, leaked (takes hours)
	tools/setup test
	tests/proof

coverage:                        ## which lines the tests run through, error paths included
	tests/coverage

# --- users ------------------------------------------------------------------

demo:                            ## install what building needs, build, run an example that shows the jail
	@test -x $(CEJAIL) || tools/try-host
	@tools/setup build
	@steps=$$($(MAKE) -n all | grep -cE '^(CC|AR|GEN|LINK) '); \
		$(MAKE) --no-print-directory $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$$(nproc)) \
		all STEPS=$$steps
	@$(CEJAIL) run --profile python tools/demo.py || { $(CEJAIL) doctor; exit 1; }
	@printf '\nNow try:\n  %s\n  %s\n' "$(CURDIR)/$(CEJAIL) run --json -p python -c 'print(1)'" \
		"$(CURDIR)/$(CEJAIL) doctor"

bench: all                       ## measure and compare with bwrap and others, in turns (BENCH="--largest 1000 scale")
	tools/bench $(BENCH)

# What install puts where: mode, folder, files.  put_text writes the paths of this installation over those
# below /usr/local.
define FILES
$(call put,755,$(BINDIR),$(CEJAIL) $(OCI))
$(call put,755,$(PREFIX)/libexec/cejail,$(HELPERS) $(GATEWAY) $(IMAGE) $(ORIGIN) $(SANDBOX) $(SERVER) $(MCP))
$(call put,644,$(PREFIX)/libexec/cejail,$(ZYGOTE))
$(call put,644,$(PREFIX)/share/cejail/profiles,$(wildcard profiles/*.json))
$(call put,644,$(PREFIX)/share/cejail/profiles/schema,$(filter-out %/openapi.json,$(wildcard profiles/schema/*.json)) $(OPENAPI:.o=.json))
$(call put,644,$(PREFIX)/share/cejail/profiles/seccomp,$(wildcard profiles/seccomp/*.json))
$(call put,644,$(PREFIX)/share/cejail/profiles/launchers,$(wildcard profiles/launchers/*))
$(call put,644,$(PREFIX)/share/cejail/prometheus,$(wildcard tools/prometheus/*))
$(call put,644,$(PREFIX)/share/cejail/clients,tools/clients/README.md)
$(call put,644,$(PREFIX)/share/cejail/clients/node,$(wildcard tools/clients/node/*))
$(call put,644,$(PREFIX)/share/cejail/clients/python,tools/clients/python/pyproject.toml)
$(call put,644,$(PREFIX)/share/cejail/clients/python/cejail,$(wildcard tools/clients/python/cejail/*.py) tools/clients/python/cejail/py.typed)
$(call put_text,644,$(DOCDIR)/examples,$(shell find tools/examples -type f ! -perm -u+x))
$(call put_text,755,$(DOCDIR)/examples,$(shell find tools/examples -type f -perm -u+x))
$(foreach n,1 5 7 8,$(call put_text,644,$(MANDIR)/man$n,$(filter %.$n,$(MANS)))$(newline))
$(call put_text,644,$(UNITDIR),$(wildcard tools/systemd/system/*))
$(call put_text,644,$(USERUNITDIR),$(wildcard tools/systemd/user/*))
$(call put,644,$(SYSUSERSDIR),tools/systemd/sysusers.d/cejail.conf)
$(call put,644,$(TMPFILESDIR),tools/systemd/tmpfiles.d/cejail.conf)
$(call put_text,644,$(PREFIX)/share/cejail/apparmor,tools/apparmor/cejail)
$(if $(APPARMOR),$(call put_text,644,$(APPARMORDIR),tools/apparmor/cejail))
$(if $(filter yes,$(BWRAP)),$(call put_link,$(PREFIX)/libexec/cejail/bwrap,$(BWRAPDIR),bwrap))
$(call put,644,$(BASHDIR),$(wildcard tools/completions/bash/*))
$(call put,644,$(ZSHDIR),tools/completions/_cejail)
$(call put,644,$(FISHDIR),tools/completions/cejail.fish)
endef
define newline


endef
PATHS  = -e 's|/usr/local/bin/cejail|$(BINDIR)/cejail|g' -e 's|/usr/local/share/doc/cejail|$(DOCDIR)|g' \
	 -e 's|/usr/local/libexec/cejail|$(PREFIX)/libexec/cejail|g' -e 's|/usr/local/share/cejail|$(PREFIX)/share/cejail|g' \
	 -e 's|\.\./clients/|$(shell realpath -ms --relative-to=$(DOCDIR)/examples $(PREFIX)/share/cejail/clients)/|g' \
	 $(if $(filter 3.0,$(APPARMOR)),$(AS_ABI3))
AS_ABI3 = -e 's|<abi/4.0>|<abi/3.0>|' -e 's|attach_disconnected.path=/%|attach_disconnected|' \
	 -e '/^\t\(userns\|mqueue\|io_uring\),$$/d'

install: all                     ## into $(DESTDIR)$(PREFIX)
install: put = install -Dm$1 -t $(DESTDIR)$2 $3
install: put_text = $(put) && sed -i $(PATHS) $(addprefix $(DESTDIR)$2/,$(notdir $3))
install: put_link = install -d $(DESTDIR)$2 && ln -sf $1 $(DESTDIR)$2/$3
install:
	$(FILES)

# Folders that remain when they are empty.
KEPT   = ""$(if $(DESTDIR),,|$(PREFIX)|$(PREFIX)/bin|$(PREFIX)/lib|$(PREFIX)/share|$(PREFIX)/share/man)
uninstall:                       ## what install put there, and the folders that are then empty
uninstall: put = cd $(DESTDIR)$2 2>/dev/null || exit 0; rm -f $(notdir $3) && rm -rf $(if $(filter %.py,$3),__pycache__); dir=$2; \
	until case "$$dir" in $(KEPT)) ;; *) ! rmdir "$(DESTDIR)$$dir" 2>/dev/null ;; esac; do dir=$${dir%/*}; done
uninstall: put_text = $(put)
uninstall: put_link = $(call put,,$2,$3)
uninstall:
	$(FILES)

dist:                            ## the tarball of the commit, below build/dist: the same bytes each time
	tools/release --pack
deb:                             ## Debian packages of this tree, below build/deb
	tools/setup package
	tools/deb $(VERSION)
deb-check:                       ## build them twice, compare, and run lintian and blhc (takes minutes)
	tools/setup package
	tools/deb-check $(VERSION)
# The requirements have Fedora's names, which Debian's rpmbuild does not find.
rpm:                             ## RPM packages of the commit, below build/rpm; rpmlint looks at them
	rm -rf build/rpm
	tools/release --pack --output build/rpm/SOURCES
	rpmbuild -ba $(if $(wildcard /etc/debian_version),--nodeps) --define '_topdir $(CURDIR)/build/rpm' tools/rpm/cejail.spec
	@if command -v rpmlint >/dev/null; then rpmlint -c tools/rpm/rpmlint.toml tools/rpm/cejail.spec build/rpm/SRPMS build/rpm/RPMS; \
		else echo 'skip rpmlint (it is not installed)'; fi

# --- looking without running --------------------------------------------------

# One stamp a source, so that a second time looks at what has changed.  Versions are pinned where
# another one has other checks.
STAMPS   := build/static
CHECKED  := $(LIBSRC) $(CLISRC) $(wildcard runtime/front/helpers/*.c runtime/front/bwrap/main.c runtime/front/image/main.c runtime/front/helpers/upstream/main.c runtime/service/main.c runtime/container/main.c runtime/front/mcp/main.c runtime/jail/zygote/main.c tools/*.c tools/benchmark/*.c)
LOOK     := -std=gnu11 $(INC)
# Steps of clang's analyzer in one function, where it gives up: 225000 is its own default, which make
# proof takes.  0: without this analyzer.
NODES    ?= 0
TIDY     := $(CHECKED:%.c=$(STAMPS)/tidy-$(NODES)/%.ok)
ANALYZED := $(CHECKED:%.c=$(STAMPS)/analyze/%.ok)
# What a source includes, for the stamp.
depends   = $(CC) $(LOOK) -MM -MP -MT $@ -MF $(@:.ok=.d) $<

tidy: $(TIDY)                    ## clang-tidy over every source (NODES=225000: with its analyzer)
$(TIDY): $(STAMPS)/tidy-$(NODES)/%.ok: %.c .clang-tidy
	@mkdir -p $(@D)
	@$(depends)
	@clang-tidy-14 -quiet $(if $(filter 0,$(NODES)),-checks='-clang-analyzer-*') $< -- $(LOOK) \
		-Xclang -analyzer-config -Xclang max-nodes=$(NODES) \
		> $(@:.ok=.log) 2> $(@:.ok=.err) || { cat $(@:.ok=.log) $(@:.ok=.err); false; }
	@touch $@

analyze: $(ANALYZED)             ## gcc's analyzer over every source
$(ANALYZED): $(STAMPS)/analyze/%.ok: %.c
	@mkdir -p $(@D)
	@$(depends)
	@gcc-12 $(LOOK) -O1 -fanalyzer -Werror -fdiagnostics-plain-output -c -o /dev/null $<
	@touch $@

# Macros that would be unknown: cppcheck reads no system headers.
QUEUE_H := $(firstword $(wildcard /usr/include/$(shell gcc -print-multiarch 2>/dev/null)/sys/queue.h /usr/include/sys/queue.h))
cppcheck:                        ## cppcheck over every source, and over all of them together
	@mkdir -p $(STAMPS)/cppcheck
	@cppcheck -q -j2 --enable=warning,performance,portability,style --suppressions-list=.cppcheck \
		--std=c11 --library=posix --library=gnu --error-exitcode=1 --cppcheck-build-dir=$(STAMPS)/cppcheck \
		-I. --include=$(QUEUE_H) -D_GNU_SOURCE -D__x86_64__ -DCJ_VERSION='""' -DCJ_DATADIR='""' \
		-D'CPU_FEATURE_ACTIVE(name)=cpu_has(name)' --template='{file}:{line}: {message} [{id}]' $(CHECKED)
-include $(TIDY:.ok=.d) $(ANALYZED:.ok=.d)

# --- keeping it in order ----------------------------------------------------

format:                          ## lay the sources out
	clang-format -i $$(git ls-files '*.c' '*.h')

clean:                           ## remove what was built
	rm -rf build

help:                            ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

.PHONY: FORCE tidy analyze cppcheck all unit test probes fuzzers check check-all budget-update proof demo bench install uninstall dist deb deb-check rpm format clean help
.DELETE_ON_ERROR:
