# blinkc: schedules for collective communication.  `make help` lists the targets.

VERSION = 0.1.0
SOVERSION = 0

CC ?= cc
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR ?= $(PREFIX)/share
MANDIR ?= $(DATADIR)/man
DOCDIR ?= $(DATADIR)/doc/blinkc
BASHDIR ?= $(DATADIR)/bash-completion/completions
ZSHDIR ?= $(DATADIR)/zsh/site-functions
FISHDIR ?= $(DATADIR)/fish/vendor_completions.d
DESTDIR ?=
B ?= build
WERROR ?= $(if $(CI),-Werror)

# Contracting a*b+c into one instruction would give other bytes on other machines. With -fno-strict-overflow UBSan takes
# no overflow for an error, so its builds are without.
WRAPPING = $(if $(findstring undefined,$(CFLAGS)),,-fno-strict-overflow)
STRICT = -std=gnu11 -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings \
	-Wundef -Wvla -Wformat=2 -ffp-contract=off $(WRAPPING)
BASE = $(STRICT) $(WERROR) -D_GNU_SOURCE -DBLINK_VERSION='"$(VERSION)"' -Isrc -Iruntime/include -Iruntime -I$(B)/gen

# What is installed by `make deps`; `make check` needs the second list too, and `make check-full` all three.
DEPS = pkg-config libglpk-dev libxml2-dev libcjson-dev libmd-dev libnauty2-dev libhwloc-dev
CHECK_DEPS = $(DEPS) libucx-dev build-essential clang python3 python3-jsonschema python3-yaml libxml2-utils mandoc locales \
	git procps graphviz zsh fish
FULL_DEPS = $(CHECK_DEPS) iproute2 valgrind debhelper lintian chromium chromium-driver python3-selenium \
	openmpi-bin libopenmpi-dev

LIBS_MISSING := $(shell pkg-config --exists libxml-2.0 libcjson libmd hwloc 2>/dev/null || echo missing)
DOC_CFLAGS := $(shell pkg-config --cflags libxml-2.0 libcjson 2>/dev/null)
DOC_LIBS := $(shell pkg-config --libs libxml-2.0 libcjson 2>/dev/null)
NAUTY_CFLAGS := $(shell pkg-config --cflags nauty 2>/dev/null)
HWLOC_CFLAGS := $(shell pkg-config --cflags hwloc 2>/dev/null)
HWLOC_LIBS := $(shell pkg-config --libs hwloc 2>/dev/null)
MD_LIBS := $(shell pkg-config --libs libmd 2>/dev/null)
# Optional: libblink opens UCX when it runs, and is built for it where its headers are.
UCX_CFLAGS := $(shell pkg-config --cflags ucx 2>/dev/null)
UCX_VERSION := $(shell pkg-config --modversion ucx 2>/dev/null)
# A line for each file that is made; with V=1 the commands; with -s neither. $(call say,LINE) goes before the first command
# of a recipe, $(Q) before the others. What is built elsewhere than in build/, as with sanitizers, says so.
V ?= 0
comma := ,
Q = $(if $(filter-out 0,$(V)),,@)
SILENT := $(findstring s,$(firstword -$(MAKEFLAGS)))
say = $(Q)$(if $(Q),$(if $(SILENT),,$(info $(1)$(if $(filter build $(B)/%,$(B) $(lastword $(1))),, ($(B))))))
MAKEFLAGS += $(if $(Q),--no-print-directory)

# Hardening, as Debian builds its packages: what this compiler and this target have. Not under sanitizers, which do more.
# Fortified functions need optimisation, and are left to CPPFLAGS where these mention them (dpkg-buildflags does).
# Level 3 is level 2 for compilers that do not have it.
HARDENED := $(if $(findstring -fsanitize,$(CFLAGS)),,yes)
# To link takes longest: those of the linker are tried together, and one by one only where that fails.
accepted = $(shell echo 'int main(void) { return 0; }' | $(CC) -Werror $(1) $(2) -x c - -o /dev/null 2>/dev/null && echo ' $(1)')
HARDEN := $(if $(HARDENED),$(foreach flag, -fstack-protector-strong -fstack-clash-protection -fcf-protection \
	-mbranch-protection=standard, $(call accepted,$(flag),-fsyntax-only)))
LINK_FLAGS := $(addprefix -Wl$(comma)-z$(comma),relro now noexecstack)
ALL_ACCEPTED := $(if $(HARDENED),$(call accepted,$(LINK_FLAGS)))
HARDEN_LINK := $(if $(HARDENED),$(foreach flag, $(LINK_FLAGS), $(if $(ALL_ACCEPTED), $(flag),$(call accepted,$(flag)))))
FORTIFY := $(if $(HARDENED),$(if $(filter-out -O0,$(filter -O%,$(CFLAGS))),$(if $(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),, \
	-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)))
PIE := $(if $(HARDENED),$(if $(filter -static% -no-pie,$(CFLAGS) $(LDFLAGS)),,$(call accepted,-pie)))

COMPILE = $(CC) $(BASE) $(HARDEN) $(FORTIFY) $(DOC_CFLAGS) $(NAUTY_CFLAGS) $(HWLOC_CFLAGS) $(UCX_CFLAGS) $(CPPFLAGS) $(CFLAGS)
LINK = $(CC) $(CFLAGS) $(HARDEN_LINK) $(LDFLAGS) $(if $(findstring /runtime/,$^)$(findstring tests.a,$^),$(COVERAGE_LINK))
# `make coverage` counts these sources. Programs that have nothing to count cannot have the library that does.
COUNTS = $(if $(COVERAGE),$(if $(filter-out tests/virtual_gpu/%,$(filter runtime/% tests/%,$<)),$(COVERAGE)))

# The runtime is loaded into other programs: it must not need GLPK (GPL-3), nor what only the compiler uses. The linker takes
# from these folders what it refers to (src/LAYERS says which they are).
SHARED_SRC = $(foreach d, base model topology graph schedule msccl mscclpp format, $(wildcard src/$d/*.c src/$d/*/*.c)) \
	src/simulate/parameters.c
COMPILER_SRC = $(filter-out src/main.c $(SHARED_SRC), $(wildcard src/*.c src/*/*.c src/*/*/*.c src/*/*/*/*.c))
RUNTIME_SRC = $(filter-out runtime/perf/% runtime/nccl/% runtime/nccl_tuner/%,$(wildcard runtime/*.c runtime/*/*.c))
UNIT_SRC = $(wildcard tests/unit/*.c)
FUZZ_SRC = $(wildcard tests/fuzz/*.c)

SHARED_OBJ = $(SHARED_SRC:%.c=$(B)/%.o)
COMPILER_OBJ = $(COMPILER_SRC:%.c=$(B)/%.o)
RUNTIME_OBJ = $(RUNTIME_SRC:%.c=$(B)/%.o) $(B)/gen/kernel_modules.o
NCCL_OBJ = $(patsubst %.c,$(B)/%.o,$(filter-out runtime/nccl/audit.c,$(wildcard runtime/nccl/*.c)) runtime/driver/driver.c runtime/support/debug.c \
	runtime/support/error.c)
PERF_OBJ = $(patsubst %.c,$(B)/%.o,$(wildcard runtime/perf/*.c)) $(addprefix $(B)/runtime/, tune/miad.o driver/driver.o support/error.o)
TUNER_OBJ = $(patsubst %.c,$(B)/%.o,$(wildcard runtime/nccl_tuner/*.c))
COMPLETIONS = $(foreach program, blinkc blink-perf, $(addprefix $(B)/completions/$(program)., bash zsh fish))
RUNTIME_LIBS = $(MD_LIBS) -lm -ldl
COMPILER_LIBS = -lglpk -lnauty $(HWLOC_LIBS) $(DOC_LIBS) $(MD_LIBS) -lm -ldl

.PHONY: all
all: $(B)/blinkc $(B)/libblink.so $(B)/libblink-nccl.so $(B)/blink/libblink-audit.so $(B)/libnccl-tuner-blink.so $(B)/blink-perf \
	$(COMPLETIONS)

.PHONY: help
help:
	@echo "make quickstart   install what is needed, build, compile topologies/dgx1v.xml, execute the schedule, show it"
	@echo "make              build/blinkc, build/blink-perf, libblink.so and libnccl-tuner-blink.so; V=1 shows the commands"
	@echo "make check        the quick tests, two minutes once they are built; first installs what they need"
	@echo "make check-full   all tests: also sanitizers, valgrind, fuzzing, packages, a browser, large machines"
	@echo "make check-torch  PyTorch with libblink; first installs PyTorch in $(B)/torch, 6 GB, from PyPI"
	@echo "make coverage     which lines of runtime/ the tests execute: at least 80 % of each file, also of processes that are killed"
	@echo "make mutations    each edit of tests/mutations is found by its suite; takes long"
	@echo "make bench        time and memory of each phase, on this machine"
	@echo "make bench-sizes  what the choice of an algorithm is worth over sizes, beside rings, on all sets of GPUs of a DGX-1"
	@echo "make papers       figures of papers, planned and simulated anew: $(B)/papers/papers.html and docs/papers.md"
	@echo "make bench-peers  collectives and messages between 2, 4 and 8 ranks of this machine, beside MPI, gloo and oneCCL"
	@echo "make bench-planning  CPU and memory of planning: large machines, and those without symmetry; OLD=DIR: beside another tree"
	@echo "make check-gpu    all that needs a GPU, in 9 minutes at most, with a report; without a GPU on virtual ones"
	@echo "make bench-groups  jobs of several groups: planned together, each alone, and rings"
	@echo "make bench-groups-links  the same executed by libblink over TCP on links of known rates; as root"
	@echo "make bench-matrix-links  an alltoall of unequal blocks, over TCP on links of known rates; as root"
	@echo "make bench-links  schedules over TCP on links of known rates, made of network namespaces; as root"
	@echo "make bench-ompi   Open MPI by rules that blinkc writes for links of known rates, and by its own choice; as root"
	@echo "make bench-predicted  simulated times beside measured ones, of ranks of this machine that share memory; as root;"
	@echo "                  BENCH_PREDICTED=links: over links of known rates"
	@echo "make bench-gpu    rates of collectives on virtual GPUs; also: bench-gpu-sets, for sets of GPUs of a DGX-1,"
	@echo "                  and bench-gpu-rates, over sizes, with the cost of fences; BEFORE=DIR: beside another build"
	@echo "make asan         unit tests and corpora under AddressSanitizer and UBSan; also: ubsan, tsan, and with CC=clang msan"
	@echo "make fuzz         fuzz each target for FUZZ_SECONDS (default 60); with CC=clang by libFuzzer; also: fuzz-merge"
	@echo "make deps         install the Debian packages: $(DEPS)"
	@echo "make check-deps   install those of the tests, too: $(filter-out $(DEPS), $(FULL_DEPS))"
	@echo "make bless        rewrite the expected output of the golden tests"
	@echo "make lint         static checks: cppcheck, shellcheck, mandoc"
	@echo "make CUBINS=list  kernels as code for GPUs, besides PTX: \"80 90\", all, native, none"
	@echo "make install      to PREFIX (default /usr/local), below DESTDIR; LIBDIR and others: see Makefile; also: uninstall, installcheck"
	@echo "make dist         blinkc-$(VERSION).tar.gz; also: distcheck"
	@echo "make wheel        the Python package, with libblink, in $(B)/wheel"
	@echo "make deb          Debian packages of HEAD, in $(B)/deb; needs debhelper"
	@echo "make clean"

$(B)/blinkc: $(B)/flags $(B)/src/main.o $(COMPILER_OBJ) $(SHARED_OBJ)
	$(call say,  LD      $@)$(LINK) $(PIE) -o $@ $(filter %.o, $^) $(COMPILER_LIBS)

$(B)/shared.a: $(SHARED_OBJ)
	$(call say,  AR      $@)rm -f $@
	$(Q)$(AR) rcs $@ $^

# A thread that ranks meet at may outlive the last communicator, so that libblink stays where it was loaded.
$(B)/libblink.so: $(B)/flags $(RUNTIME_OBJ) $(B)/shared.a runtime/libblink.map
	$(call say,  LD      $@)$(LINK) -shared -Wl,-soname,libblink.so.$(SOVERSION) -Wl,-z,nodelete \
		-Wl,--version-script,runtime/libblink.map $(if $(HARDENED),-Wl$(comma)-z$(comma)defs) -o $@.$(VERSION) $(RUNTIME_OBJ) $(B)/shared.a $(RUNTIME_LIBS) -pthread
	$(Q)ln -sf libblink.so.$(VERSION) $(B)/libblink.so.$(SOVERSION)
	$(Q)ln -sf libblink.so.$(SOVERSION) $@

$(B)/runtime.a: $(RUNTIME_OBJ)
	$(call say,  AR      $@)rm -f $@
	$(Q)$(AR) rcs $@ $^

# What NCCL loads as a tuner plugin, and unloads: the part of libblink that reads schedules, and no thread.
$(B)/libnccl-tuner-blink.so: $(B)/flags $(TUNER_OBJ) $(TEST_OBJ) $(B)/runtime.a $(B)/shared.a runtime/nccl_tuner/exports.map
	$(call say,  LD      $@)$(LINK) -shared -Wl,-soname,$(@F) -Wl,--version-script,runtime/nccl_tuner/exports.map \
		$(if $(HARDENED),-Wl$(comma)-z$(comma)defs) -o $@ $(TUNER_OBJ) $(TEST_OBJ) $(B)/runtime.a $(B)/shared.a $(RUNTIME_LIBS) -pthread

# NCCL's interface, under a name of its own, to be preloaded, and as blink/libnccl.so.2, for programs that open that. A file
# named by LD_AUDIT needs nothing but the C library.
LINK_NCCL = $(LINK) -shared -Wl,-soname,libblink-nccl.so.$(SOVERSION) -Wl,-z,nodelete -Wl,--version-script,runtime/nccl/nccl.map \
	$(if $(HARDENED),-Wl$(comma)-z$(comma)defs) $(NCCL_OBJ) $(B)/shared.a -L$(B) -lblink -ldl -pthread
$(B)/libblink-nccl.so: $(NCCL_OBJ) $(B)/shared.a $(B)/libblink.so runtime/nccl/nccl.map
	$(call say,  LD      $@)$(LINK_NCCL) -o $@.$(VERSION) -Wl,-rpath,'$$ORIGIN:$$ORIGIN/..'
	$(Q)mkdir -p $(B)/blink
	$(Q)ln -sf libblink-nccl.so.$(VERSION) $(B)/libblink-nccl.so.$(SOVERSION)
	$(Q)ln -sf libblink-nccl.so.$(SOVERSION) $@
	$(Q)ln -sf ../libblink-nccl.so.$(VERSION) $(B)/blink/libnccl.so.2

$(B)/blink/libblink-audit.so: $(B)/runtime/nccl/audit.o
	@mkdir -p $(@D)
	$(call say,  LD      $@)$(LINK) -shared $(if $(HARDENED),-Wl$(comma)-z$(comma)defs) -o $@ $^

LINK_PERF = $(LINK) $(PIE) $(PERF_OBJ) $(B)/shared.a -L$(B) -lblink -lm -ldl -pthread

$(B)/blink-perf: $(PERF_OBJ) $(B)/shared.a $(B)/libblink.so
	$(call say,  LD      $@)$(LINK_PERF) -o $@ -Wl,-rpath,'$$ORIGIN'

# The programs write them from their lists of options. RUN runs programs where they are built for another machine.
RUN ?=
$(B)/completions/blinkc.%: $(B)/blinkc
	@mkdir -p $(@D)
	$(call say,  GEN     $@)$(RUN) $< completion $* >$@.new
	$(Q)mv $@.new $@

$(B)/completions/blink-perf.%: $(B)/blink-perf
	@mkdir -p $(@D)
	$(call say,  GEN     $@)$(RUN) $< --completion $* >$@.new
	$(Q)mv $@.new $@

# Bytes that a function may have on the stack. libblink runs on the small stacks of other people's threads: libblink(3)
# promises 16 KiB for a whole call, and tests/unit/test_process.c and tests/stack.py hold it. Sanitizers make frames larger.
FRAME = 8192
$(SHARED_OBJ) $(RUNTIME_OBJ) $(TUNER_OBJ): FRAME = 2048
# Not in libblink: paths; the buffers of blink-perf.
$(B)/src/base/file.o $(B)/src/base/pool.o: FRAME = 8192
$(B)/runtime/perf/data.o: FRAME = 40960
LIMIT_FRAME = $(if $(findstring -fsanitize,$(CFLAGS))$(filter tests/%,$<),,-Wframe-larger-than=$(FRAME))

# Kernels: a module for each type of elements and one that only moves, as PTX, which a GPU's driver compiles. clang makes it
# for the oldest GPUs that matter, and so for all, and once more for those whose fences are shorter: of nvcc, each version has
# given up some, and what it makes needs as new a driver. Without either, libblink has no kernels. In files of their own, so
# that they are built once for all sanitizers.
PTX_COMPILER ?= $(firstword $(foreach c,clang nvcc,$(if $(shell command -v $c 2>/dev/null),$c)) none)
NVCC ?= nvcc
CLANG ?= clang
PTX_DIR ?= $(B)/gen/ptx
TYPES_H = runtime/include/blink_types.h
KERNEL_TYPES := $(shell sed -n 's/^\tX.blink[^,]*, \([a-z0-9]*\),.*/\1/p' $(TYPES_H))
MULTICAST_SRC = $(wildcard runtime/cuda/kernels/multicast.*) runtime/cuda/multicast_call.h
KERNEL_SRC = $(filter-out $(MULTICAST_SRC), $(wildcard runtime/cuda/kernels/*)) runtime/cuda/device.h $(TYPES_H) runtime/include/blink_float.h
KERNEL_INCLUDE = -Iruntime/include -Iruntime -Iruntime/cuda
KERNEL_TYPE = $(if $(filter-out move,$(1)),-DKERNEL_TYPE=$(1))
PTX_BY_clang = $(CLANG) -x cuda --cuda-device-only --cuda-gpu-arch=sm_$(or $(PTX_KIND),60) -nocudainc -nocudalib -Wno-unknown-cuda-version \
	-Wall -Wextra $(WERROR) -O3 -ffp-contract=off -S
PTX_BY_nvcc = $(NVCC) -x cu -ptx $(if $(WERROR),-Werror all-warnings) -std=c++17 -O3 -fmad=false
PTX = $(if $(filter clang nvcc,$(PTX_COMPILER)),$(addprefix $(PTX_DIR)/, $(addsuffix .ptx, move $(KERNEL_TYPES))))
PTX_70 = $(if $(filter clang,$(PTX_COMPILER)),$(PTX:%.ptx=%.70.ptx))

# One more for GPUs of capability 9.0, with instructions of PTX ISA 8.2, which assemblers know and compilers pass on: clang
# makes what it can, for the latest GPUs that it surely knows.
PTX_90 = $(if $(filter clang,$(PTX_COMPILER))$(if $(filter nvcc,$(PTX_COMPILER)),$(filter compute_90,$(shell $(NVCC) --list-gpu-arch \
	2>/dev/null))),$(PTX_DIR)/multicast.90.ptx)

# Beside it, code for some GPUs, which their driver need not compile at the first start: CUBINS="80 90", by compute
# capability, or all, none, or native: of this machine's GPUs, asked once. One fat binary a module, compressed; each kind
# takes some 20 s to assemble and half of a megabyte.
CUBINS ?= $(if $(wildcard /dev/nvidia0),native,none)
CUDA_BIN = $(patsubst %,$(dir $(shell command -v $(NVCC) 2>/dev/null)),$(filter-out none,$(CUBINS)))
PTXAS ?= $(firstword $(wildcard $(addsuffix ptxas,$(CUDA_BIN))))
FATBINARY ?= $(firstword $(wildcard $(addsuffix fatbinary,$(CUDA_BIN))))
CUBINS_all = 60 70 75 80 90 100 120
CUBINS_none =
CUBINS_native = $(shell mkdir -p $(PTX_DIR); test -f $(PTX_DIR)/native || nvidia-smi --query-gpu=compute_cap --format=csv,noheader \
	2>/dev/null | tr -d . | sort -un >$(PTX_DIR)/native; cat $(PTX_DIR)/native)
CUBIN_WANTED = $(if $(filter all none native,$(CUBINS)),$(CUBINS_$(CUBINS)),$(CUBINS))
CUBIN_KNOWN = $(patsubst sm_%,%,$(shell $(NVCC) --list-gpu-code 2>/dev/null))
CUBIN_KINDS := $(if $(filter-out none,$(CUBINS)),$(if $(and $(PTX),$(PTXAS),$(FATBINARY)),$(filter $(CUBIN_KNOWN),$(CUBIN_WANTED))))
FATBIN = $(if $(CUBIN_KINDS),$(PTX:%.ptx=%.fatbin))

$(PTX_DIR)/%.fatbin: $(PTX_DIR)/%.ptx $(if $(PTX_70),$(PTX_DIR)/%.70.ptx) $(PTX_DIR)/kinds
	$(call say,  CUBIN   $@)for kind in $(CUBIN_KINDS); do \
		of=$<; test -z '$(PTX_70)' || test $$kind -lt 70 || of=$(<:.ptx=.70.ptx); \
		$(PTXAS) -arch=sm_$$kind -o $@.$$kind $$of || exit; done; \
		$(FATBINARY) --create=$@ --64 --compress-all $(foreach k,$(CUBIN_KINDS),--image3=kind=elf,sm=$k,file=$@.$k) && \
		rm $(addprefix $@.,$(CUBIN_KINDS))

$(PTX_DIR)/kinds: always
	@mkdir -p $(@D)
	@echo '$(CUBIN_KINDS)' | cmp -s - $@ || echo '$(CUBIN_KINDS)' >$@

# Without comments and blanks, which are a third.
SHORTEN_PTX = sed 's|[ \t]*//.*||; s/^[ \t]*//; s/[ \t][ \t]*/ /g; s/, /,/g; /^$$/d'
$(PTX_70): private PTX_KIND = 70
$(PTX) $(PTX_70): $(PTX_DIR)/%.ptx: $(KERNEL_SRC) $(PTX_DIR)/flags
	@mkdir -p $(@D)
	$(call say,  PTX     $@)$(PTX_BY_$(PTX_COMPILER)) $(KERNEL_INCLUDE) $(call KERNEL_TYPE,$(*:.70=)) -o $@.new runtime/cuda/kernels/module.cu
	$(Q)$(SHORTEN_PTX) $@.new >$@.short && rm $@.new && mv $@.short $@

$(PTX_90): private PTX_KIND = 70
$(PTX_90): private NVCC += -arch=sm_90
$(PTX_90): $(KERNEL_SRC) $(MULTICAST_SRC) $(PTX_DIR)/flags
	@mkdir -p $(@D)
	$(call say,  PTX     $@)$(PTX_BY_$(PTX_COMPILER)) $(KERNEL_INCLUDE) -o $@.new runtime/cuda/kernels/multicast.cu
	$(Q)$(SHORTEN_PTX) $@.new | $(if $(filter clang,$(PTX_COMPILER)),sed 's/^\.version .*/.version 8.2/; s/^\.target .*/.target sm_90/',cat) \
		>$@.short && rm $@.new && mv $@.short $@

# Whether warnings are errors changes nothing that is built.
PTX_FLAGS = $(PTX_COMPILER) $(filter-out -Werror all-warnings,$(PTX_BY_$(PTX_COMPILER)))

$(PTX_DIR)/flags: always
	@mkdir -p $(@D)
	@echo '$(PTX_FLAGS)' | cmp -s - $@ || echo '$(PTX_FLAGS)' >$@

# The assembler takes the files as they are, each with a 0 after it.
$(B)/gen/kernel_modules.c: $(PTX) $(PTX_70) $(PTX_90) $(FATBIN) $(PTX_DIR)/flags $(PTX_DIR)/kinds Makefile
	@mkdir -p $(@D)
	$(if $(PTX),,$(info no clang and no nvcc: libblink will have no kernels for GPUs))
	$(call say,  GEN     $@){ printf '#include "cuda/kernels.h"\n\n'; $(foreach p, $(PTX) $(PTX_70) $(PTX_90), m=$(subst .,_,$(basename $(notdir $p))); \
		printf '__asm__(".section .rodata\\n_ptx_%s: .incbin \"%s\"\\n.byte 0\\n.previous");\nextern const char ptx_%s[] __asm__("_ptx_%s");\n' \
			$$m $(abspath $p) $$m $$m;) \
		$(foreach p, $(FATBIN), m=$(basename $(notdir $p)); \
		printf '__asm__(".section .rodata\\n.balign 16\\n_cubins_%s: .incbin \"%s\"\\n.previous");\nextern const char cubins_%s[] __asm__("_cubins_%s");\n' \
			$$m $(abspath $p) $$m $$m;) \
		printf '\nconst struct kernel_module kernel_modules[] = {\n'; $(foreach p, $(PTX), m=$(basename $(notdir $p)); \
		printf '\t{ "%s", ptx_%s, %s, %s },\n' $$m $$m $(if $(PTX_70),ptx_$${m}_70,NULL) $(if $(CUBIN_KINDS),cubins_$$m,NULL);) \
		printf '\t{ NULL, NULL, NULL, NULL },\n};\n\nconst char *const kernel_multicast = %s;\n' $(if $(PTX_90),ptx_multicast_90,NULL); \
		} >$@.new
	$(Q)mv $@.new $@

$(B)/gen/kernel_modules.o: $(B)/gen/kernel_modules.c $(B)/flags
	$(call say,  CC      $<)$(COMPILE) -fPIC -fvisibility=hidden -c -o $@ $<

$(B)/%.o: %.c $(B)/flags | deps-present
	@mkdir -p $(@D)
	$(call say,  CC      $<)$(COMPILE) $(LIMIT_FRAME) $(COUNTS) -fPIC -fvisibility=hidden -MMD -MP -c -o $@ $<

# The page of `blinkc report`, edited as what it is: its lines become C strings.
$(B)/gen/report_page.h: src/verb/report/report.html src/verb/report/report.css src/verb/report/report.js Makefile $(B)/flags
	@mkdir -p $(@D)
	$(call say,  GEN     $@)for f in html css js; do printf 'static const char report_%s[] =\n' $$f && \
		sed 's/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$$/\\n"/' src/verb/report/report.$$f && printf ';\n' || exit 1; done >$@.new
	$(Q)mv $@.new $@
$(B)/src/verb/report/html.o: $(B)/gen/report_page.h

# The sources of the kernels, for code that is complete (src/format/cu_kernel.c), and a mark of what they are, which libblink
# compares: a module of other sources could have another protocol.
KERNEL_TEXT_types = $(addprefix runtime/include/, blink_float.h blink_types.h)
KERNEL_TEXT_portable = $(addprefix runtime/cuda/, device.h kernels/portable.h)
KERNEL_TEXT_element = runtime/cuda/kernels/element.h
KERNEL_TEXT_collective = $(addprefix runtime/cuda/kernels/, block.h strips.h pass.h flags.h packets.h lines.h collective.h \
	entry.h generated.h)
KERNEL_TEXTS = types portable element collective
KERNEL_TEXT = $(foreach t, $(KERNEL_TEXTS), $(KERNEL_TEXT_$t))
$(B)/gen/kernel_text.h: $(KERNEL_TEXT) Makefile $(B)/flags
	@mkdir -p $(@D)
	$(call say,  GEN     $@)printf '#define KERNEL_MARK "blink_kernels_%s_"\n' $$(cat $(KERNEL_TEXT) | cksum | cut -d' ' -f1) >$(@D)/kernel_mark.h
	$(Q){ echo '#include "kernel_mark.h"'; $(foreach t, $(KERNEL_TEXTS), printf '\nstatic const char kernel_text_%s[] =\n' $t && \
		sed '/^#include "\(kernels\|cuda\|blink_\)/d; s/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$$/\\n"/' $(KERNEL_TEXT_$t) && \
		echo ';' &&) :; } >$@.new
	$(Q)mv $@.new $@
$(B)/src/format/cu_kernel.o $(B)/runtime/cuda/generated.o: $(B)/gen/kernel_text.h

# Written anew when what it says changes: everything is then built anew. No object depends on what is left out.
FLAGS = $(filter-out -Werror -I$(B)/gen,$(COMPILE)) $(HARDEN_LINK) $(PIE) $(LDFLAGS) $(COVERAGE) $(VERSION) $(SOVERSION) $(UCX_VERSION:%=ucx-%)
$(B)/flags: always
	@mkdir -p $(@D)
	@echo '$(subst ','"'"',$(FLAGS))' | cmp -s - $@ || echo '$(subst ','"'"',$(FLAGS))' >$@

.PHONY: always deps-present
deps-present:
	@if [ -n "$(LIBS_MISSING)" ]; then echo "a library is missing; run: make deps   (it installs $(DEPS))" >&2; exit 1; fi
	@echo '#include <glpk.h>' | $(CC) $(CPPFLAGS) -E -x c - >/dev/null 2>&1 || \
		{ echo "glpk.h is missing; run: make deps   (it installs $(DEPS))" >&2; exit 1; }
	@echo '#include <nauty/traces.h>' | $(CC) $(NAUTY_CFLAGS) $(CPPFLAGS) -E -x c - >/dev/null 2>&1 || \
		{ echo "nauty/traces.h is missing; run: make deps   (it installs $(DEPS))" >&2; exit 1; }

# ---- packages ----

.PHONY: deps check-deps
deps:
	@tests/packages $(DEPS)
check-deps:
	@tests/packages $(FULL_DEPS)

# The libraries are looked for when make starts, so what needs them after `deps` starts make again.
.PHONY: quickstart
quickstart: deps
	@$(MAKE) all
	$(B)/blinkc -q topologies/dgx1v.xml -o $(B)/dgx1v.json
	$(B)/blinkc check $(B)/dgx1v.json
	@echo; echo "The schedule executed on the host: all ranks are threads of one process, every element is checked. The times are of"
	@echo "copies in this machine's memory, without a GPU; they do not say how fast GPUs are."
	$(B)/blink-perf $(B)/dgx1v.json -b 1K -e 1M -f 4
	@echo
	$(B)/blinkc show $(B)/dgx1v.json

# ---- tests ----

# A driver of CUDA whose GPUs are threads (tests/virtual_gpu).
VIRTUAL_GPU_OBJ = $(patsubst %.c,$(B)/%.o,$(filter-out $(wildcard $(addprefix tests/virtual_gpu/, nvml*.c cudart*.c)), \
	$(wildcard tests/virtual_gpu/*.c)))
VIRTUAL_GPU_LIBS = $(DOC_LIBS) $(MD_LIBS) -lm -ldl -pthread
$(B)/tests/virtual_gpu/libcuda.so.1: $(VIRTUAL_GPU_OBJ) $(B)/shared.a tests/virtual_gpu/libcuda.map
	$(call say,  LD      $@)$(LINK) -shared -Wl,-soname,$(@F) -Wl,-z,nodelete $(if $(HARDENED),-Wl$(comma)-z$(comma)defs) \
		-Wl,--version-script,tests/virtual_gpu/libcuda.map -o $@ $(VIRTUAL_GPU_OBJ) $(B)/shared.a $(VIRTUAL_GPU_LIBS)

# Programs that have it, and twins of their own.
VIRTUAL_TESTS = $(addprefix tests/unit/test_virtual_, streams graphs kernels order)
VIRTUAL_TWINS = tests/virtual_gpu/test/twins.so
$(VIRTUAL_TESTS:%=$(B)/%): %: %.o $(B)/tests/virtual_gpu/libcuda.so.1 $(B)/$(VIRTUAL_TWINS)
	$(call say,  LD      $@)$(LINK) -o $@ $(filter-out %/twins.so, $^) -Wl,-rpath,'$$ORIGIN/../virtual_gpu' -pthread
$(B)/$(VIRTUAL_TWINS): tests/virtual_gpu/twin.h tests/virtual_gpu/test/twins.h

# More objects and flags, as sanitizers need them.
TEST_OBJ =
TEST_LINK =
$(B)/tests/%: $(B)/tests/%.o $(B)/tests.a $(TEST_OBJ)
	$(call say,  LD      $@)$(LINK) $(TEST_LINK) -o $@ $(filter %.o, $^) $(B)/tests.a $(COMPILER_LIBS) -ldl -pthread

# The plugin for NCCL, which is not in libblink.
$(B)/tests/fuzz/fuzz_tuner: $(TUNER_OBJ)
# Threads, time and TCP of libblink are the target's own (tests/fuzz/world.h).
WORLD = pthread_create pthread_join pthread_self pthread_cond_wait pthread_cond_timedwait pthread_cond_broadcast pthread_cond_signal \
	sched_getaffinity sched_yield clock_gettime nanosleep clock_nanosleep poll __poll_chk ppoll __ppoll_chk epoll_wait syscall \
	socket bind connect getsockname accept4
$(B)/tests/fuzz/fuzz_frames: private LINK += $(WORLD:%=-Wl,--wrap=%)

# All but the programs, for tests: each takes what it refers to.
$(B)/tests.a: $(RUNTIME_OBJ) $(COMPILER_OBJ) $(SHARED_OBJ)
	$(call say,  AR      $@)rm -f $@
	$(Q)$(AR) rcsT $@ $^

# With the twins of kernels.
$(B)/tests/unit/test_kernels: $(B)/tests/unit/test_kernels.o $(B)/tests.a $(B)/tests/virtual_gpu/switch.o $(TEST_OBJ)
	$(call say,  LD      $@)$(LINK) $(TEST_LINK) -o $@ $< $(TWIN_OBJ) $(B)/tests/virtual_gpu/switch.o $(TEST_OBJ) $(B)/tests.a $(COMPILER_LIBS) -ldl -pthread

# A program that has libblink alone, as those of users: the thread-local data of the compiler's libraries take stack.
$(B)/tests/unit/test_process: $(B)/tests/unit/test_process.o $(RUNTIME_OBJ) $(B)/shared.a $(TEST_OBJ)
	$(call say,  LD      $@)$(LINK) $(TEST_LINK) -o $@ $^ $(RUNTIME_LIBS) -pthread

# The driver's interface, held against NVIDIA's header where that is installed, by the compiler; and libraries that are no
# driver, for what opens them.
CUDA_H := $(firstword $(wildcard /usr/local/cuda/include/cuda.h /usr/include/cuda.h))
$(B)/tests/cuda/real.o: private BASE += -Werror=incompatible-pointer-types $(CUDA_H:%/cuda.h=-isystem %)
$(B)/tests/cuda/real.o: $(CUDA_H) tests/cuda/layout.h
FAKE_DRIVERS = $(addprefix $(B)/tests/cuda/, nothing.so older.so twins.so)
$(FAKE_DRIVERS): $(B)/tests/cuda/%.so: tests/cuda/%.c runtime/driver/driver.h $(B)/flags
	@mkdir -p $(@D)
	$(call say,  CC      $<)$(CC) $(STRICT) -O1 -shared -fPIC -Iruntime -Itests/virtual_gpu -o $@ $<
GPU_MEMORY_OBJ = $(patsubst %.c,$(B)/%.o,$(wildcard tests/unit/gpu_memory/*.c))
$(B)/tests/unit/test_gpu_memory: $(GPU_MEMORY_OBJ) | $(FAKE_DRIVERS) $(B)/tests/virtual_gpu/libcuda.so.1
$(B)/tests/unit/test_driver: $(addprefix $(B)/, tests/unit/test_driver.o tests/cuda/real.o runtime/driver/driver.o runtime/support/error.o) \
		$(TEST_OBJ) | $(FAKE_DRIVERS)
	$(call say,  LD      $@)$(LINK) $(TEST_LINK) -o $@ $(filter %.o, $^) -ldl -pthread

# Programs that have its files, since they test what these say to each other.
VIRTUAL_INNER_TESTS = $(addprefix tests/unit/test_virtual_, memory links waiting)
$(VIRTUAL_INNER_TESTS:%=$(B)/%): %: %.o $(VIRTUAL_GPU_OBJ) $(B)/shared.a $(TEST_OBJ)
	$(call say,  LD      $@)$(LINK) $(TEST_LINK) -o $@ $^ $(VIRTUAL_GPU_LIBS)
VIRTUAL_MEMORY_OBJ = $(patsubst %.c,$(B)/%.o,$(wildcard tests/unit/virtual_memory/*.c))
$(B)/tests/unit/test_virtual_memory: $(VIRTUAL_MEMORY_OBJ)
$(VIRTUAL_INNER_TESTS:%=$(B)/%.o) $(VIRTUAL_MEMORY_OBJ): private BASE += -Itests

# Ranks of a job: of libblink alone, too.
JOB_PROGRAMS = $(addprefix tests/job/, matrix order windows faults launched gpu flood phase)
JOB_OBJ = $(addprefix $(B)/tests/job/, job.o call.o flight.o blocks.o device.o)
$(JOB_PROGRAMS:%=$(B)/%) $(addprefix $(B)/tests/bench/, peers gpu load): $(B)/tests/%: $(B)/tests/%.o $(JOB_OBJ) $(RUNTIME_OBJ) $(B)/shared.a $(TEST_OBJ)
	$(call say,  LD      $@)$(LINK) $(TEST_LINK) -o $@ $^ $(RUNTIME_LIBS) -pthread

# The bootstrap needs nothing else of libblink.
$(addprefix $(B)/tests/unit/, test_bootstrap test_deaths test_strangers): $(B)/tests/unit/%: $(B)/tests/unit/%.o \
		$(filter $(B)/runtime/bootstrap/%, $(RUNTIME_OBJ)) $(B)/runtime/support/thread.o $(B)/shared.a $(TEST_OBJ)
	$(call say,  LD      $@)$(LINK) $(TEST_LINK) -o $@ $^ $(MD_LIBS) -pthread

# The library itself, whose calls fail.
$(B)/tests/job/failing: $(addprefix $(B)/tests/, job/failing.o faults.o job/faults_ranks.o) $(JOB_OBJ) $(addprefix $(B)/runtime/, driver/driver.o support/error.o) \
	$(B)/libblink.so
	$(call say,  LD      $@)$(LINK) $(TEST_LINK) -o $@ $(filter %.o, $^) -L$(B) -lblink -Wl,-rpath,'$$ORIGIN/../..' -lm -ldl -pthread
$(B)/tests/job/faults: $(addprefix $(B)/tests/job/faults_, ranks.o caller.o chance.o peer.o system.o)
$(B)/tests/job/order: $(addprefix $(B)/tests/job/order_, calls.o comms.o messages.o uneven.o ends.o)
$(B)/tests/job/gpu: $(addprefix $(B)/tests/job/gpu_, calls.o messages.o failures.o)

# Programs of NCCL's interface, and a library in the place of NCCL's.
$(B)/tests/nccl/libnccl.so.2: tests/nccl/real.c runtime/nccl/nccl.h $(B)/flags
	@mkdir -p $(@D)
	$(call say,  LD      $@)$(COMPILE) -fPIC -shared -Wl,-soname,$(@F) -o $@ $< -pthread
$(B)/tests/nccl/beside: $(addprefix $(B)/, tests/nccl/beside.o runtime/driver/driver.o runtime/support/error.o) $(B)/tests/nccl/libnccl.so.2
	$(call say,  LD      $@)$(LINK) $(TEST_LINK) -o $@ $^ -Wl,-rpath,'$$ORIGIN' -ldl -pthread
NCCL_PROGRAM_OBJ = $(patsubst %.c,$(B)/%.o,$(wildcard tests/nccl/program*.c))
$(B)/tests/nccl/program: $(NCCL_PROGRAM_OBJ) $(addprefix $(B)/runtime/, driver/driver.o support/error.o) $(B)/libblink-nccl.so
	$(call say,  LD      $@)$(LINK) $(TEST_LINK) -o $@ $(filter %.o, $^) -L$(B) -lblink-nccl -Wl,-rpath,'$$ORIGIN/../..' -ldl -pthread

$(B)/tests/%.so: tests/%.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,  CC      $<)$(CC) $(STRICT) -O1 -shared -fPIC -D_GNU_SOURCE -o $@ $< -ldl

# What NVIDIA's driver and libhwloc tell of a machine, of a topology file.
VIRTUAL_NVML = $(addprefix $(B)/tests/virtual_gpu/, libnvidia-ml.so.1 hwloc/libhwloc.so.15 driver/libcuda.so.1)
LINK_VIRTUAL_NVML = $(LINK) $(TEST_LINK) -shared -Wl,-soname,$(@F) -Wl,--exclude-libs,ALL -o $@ $(filter %.o %.a, $^) \
	$(DOC_LIBS) $(MD_LIBS) -lm -ldl
$(B)/tests/virtual_gpu/libnvidia-ml.so.1: $(addprefix $(B)/tests/virtual_gpu/, nvml.o nvml_machine.o) $(B)/shared.a $(TEST_OBJ)
	$(call say,  LD      $@)$(LINK_VIRTUAL_NVML)
$(B)/tests/virtual_gpu/driver/libcuda.so.1: $(addprefix $(B)/tests/virtual_gpu/, nvml_driver.o nvml_machine.o) $(B)/shared.a $(TEST_OBJ)
	@mkdir -p $(@D)
	$(call say,  LD      $@)$(LINK_VIRTUAL_NVML)
$(B)/tests/virtual_gpu/hwloc/libhwloc.so.15: $(addprefix $(B)/tests/virtual_gpu/, nvml_hwloc.o nvml_machine.o) $(B)/shared.a $(TEST_OBJ)
	@mkdir -p $(@D)
	$(call say,  LD      $@)$(LINK_VIRTUAL_NVML)

$(B)/tests/oracle $(B)/tests/cost: $(B)/tests/%: tests/%.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,  CC      $<)$(CC) $(STRICT) -O1 -D_GNU_SOURCE -o $@ $<

# The kernels as the virtual GPUs execute them, and the table of them.
TWIN_OBJ = $(patsubst %,$(B)/tests/virtual_gpu/twins/%.o, move $(KERNEL_TYPES) multicast table)
$(TWIN_OBJ): TWIN_COMPILE = $(COMPILE) -Itests -Iruntime/cuda -fPIC -MMD -MP -c -o $@
$(B)/tests/virtual_gpu/twins/table.o: tests/virtual_gpu/twins/table.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,  CC      $<)$(TWIN_COMPILE) $<

$(B)/tests/virtual_gpu/twins/multicast.o: runtime/cuda/kernels/multicast.cu $(B)/flags
	@mkdir -p $(@D)
	$(call say,  CC      $@)$(TWIN_COMPILE) -Wno-type-limits -x c $<

$(filter-out %/table.o %/multicast.o, $(TWIN_OBJ)): $(B)/tests/virtual_gpu/twins/%.o: runtime/cuda/kernels/module.cu $(B)/flags
	@mkdir -p $(@D)
	$(call say,  CC      $@)$(TWIN_COMPILE) -Wno-type-limits -x c $(call KERNEL_TYPE,$*) $<

$(B)/tests/unit/test_kernels: $(TWIN_OBJ)
$(B)/tests/virtual_gpu/libblink-twins.so: $(TWIN_OBJ) $(B)/tests/virtual_gpu/libcuda.so.1
	$(call say,  LD      $@)$(LINK) -shared -o $@ $^

# Where CUDA's headers are: its runtime over the virtual driver, and the twins of the kernels of generated programs.
CUDART_H := $(wildcard $(CUDA_H:%/cuda.h=%/cuda_runtime_api.h))
CUDART_NAME := libcudart.so.$(if $(CUDART_H),$(shell sed -n 's/^#define CUDART_VERSION *\([0-9]*\)[0-9]\{3\}$$/\1/p' $(CUDART_H)))
CUDART = $(if $(CUDART_H),$(addprefix $(B)/tests/virtual_gpu/, $(CUDART_NAME) libprogram-twins.so))
CUDART_OBJ = $(patsubst %.c,$(B)/%.o,$(wildcard tests/virtual_gpu/cudart*.c))
$(CUDART_OBJ): private BASE += -isystem $(dir $(CUDART_H))
$(B)/tests/virtual_gpu/$(CUDART_NAME): $(CUDART_OBJ) $(B)/tests/virtual_gpu/libcuda.so.1
	@echo '$(@F) { global: cuda*; __cuda*; local: *; };' >$(@D)/cudart.map
	$(call say,  LD      $@)$(LINK) -shared -Wl,-soname,$(@F) -Wl,--version-script,$(@D)/cudart.map -o $@ $^ -pthread

$(B)/tests/virtual_gpu/libprogram-twins.so: tests/virtual_gpu/cudart_twins.cc $(B)/tests/virtual_gpu/libcuda.so.1 \
	$(addprefix tests/virtual_gpu/, cudart.h twin.h) $(wildcard runtime/include/*.h) $(B)/flags
	$(call say,  CXX     $<)$(CXX) -std=c++17 -Wall -Wextra $(WERROR) -ffp-contract=off $(CFLAGS) -fPIC -shared \
		-Iruntime/include -o $@ $(filter %.cc %.so.1, $^)

NCCL_PROGRAMS = $(addprefix tests/nccl/, program beside)
.SECONDARY:
.PHONY: tests suite-programs
CHECK_GPU_PARTS = $(addprefix $(B)/tests/check_gpu/, parts $(if $(PTX),parts.ptx) parts-twins.so)
tests: suite-programs $(UNIT_SRC:%.c=$(B)/%) $(FUZZ_SRC:%.c=$(B)/%)
# What suites other than unit, fuzz, corpus and hwloc run.
suite-programs: all $(JOB_PROGRAMS:%=$(B)/%) $(NCCL_PROGRAMS:%=$(B)/%) \
	$(addprefix $(B)/tests/, job/failing oom.so faults.so oracle cost json_values net_pair nccl_play nccl_table same_bits) \
	$(VIRTUAL_NVML) $(addprefix $(B)/tests/virtual_gpu/, libcuda.so.1 libblink-twins.so) $(CUDART) $(CHECK_GPU_PARTS)

# Of the programs, those that the tests run are built under sanitizers, below $(B)/asan and so on, by gcc or clang. Threads
# are in the runtime only: the planner that its tests call comes from the plain build. MemorySanitizer is clang's, and knows
# nothing of what GLPK, nauty, libxml2 and cJSON write: its programs are those of libblink's path (tests/msan.c). Of debug information
# they have the lines, which reports name: the rest takes a quarter of the time of the compiler.
ASAN_CFLAGS = -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
UBSAN_CFLAGS = -O1 -g1 -fsanitize=undefined -fno-sanitize-recover=all
TSAN_CFLAGS = -O1 -g1 -fsanitize=thread
MSAN_CFLAGS = -O1 -g1 -fsanitize=memory -fsanitize-memory-track-origins -fno-omit-frame-pointer
ASAN_PROGRAMS = blinkc blink-perf libnccl-tuner-blink.so $(addprefix tests/, json_values nccl_play) \
	$(addprefix tests/virtual_gpu/, libnvidia-ml.so.1 hwloc/libhwloc.so.15 libcuda.so.1 libblink-twins.so) \
	$(UNIT_SRC:%.c=%) $(FUZZ_SRC:%.c=%) $(JOB_PROGRAMS) $(GPU_PROGRAMS)
MSAN_PROGRAMS = $(addprefix tests/, unit/test_process unit/test_linear unit/test_split fuzz/fuzz_schedule fuzz/fuzz_index \
	fuzz/fuzz_execute fuzz/fuzz_view)
TSAN_PROGRAMS = $(addprefix tests/unit/test_, runtime program index process net ucx net_broken net_zero bootstrap deaths strangers bell shm \
	gpu_memory gpu_relay kernels) $(JOB_PROGRAMS) $(VIRTUAL_TESTS) $(VIRTUAL_INNER_TESTS) $(addprefix tests/virtual_gpu/, libcuda.so.1 libblink-twins.so) \
	$(GPU_PROGRAMS)
GPU_PROGRAMS = tests/nccl/program $(if $(CUDART), tests/same_bits $(CUDART:$(B)/%=%))

.PHONY: check check-full tests-asan tests-ubsan tests-tsan tests-msan asan ubsan tsan msan
check:
	@tests/packages $(CHECK_DEPS)
	$(MAKE) $(PARALLEL) tests WERROR=-Werror
	@BUILD=$(B) MAKE="$(MAKE)" tests/run

check-full:
	@tests/packages $(FULL_DEPS)
	$(MAKE) $(PARALLEL) tests tests-asan tests-tsan WERROR=-Werror
	@BUILD=$(B) MAKE="$(MAKE)" tests/run --full

# What papers publish, and ours beside it.
.PHONY: papers
papers: $(B)/blinkc
	$(Q)$(PYTHON) papers/run.py --blinkc $(B)/blinkc --folder $(B)/papers --html $(B)/papers/papers.html --markdown docs/papers.md

# As many jobs as there are processors, where make was not given a number.
PARALLEL = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell getconf _NPROCESSORS_ONLN))
tests-asan:
	@$(MAKE) B=$(B)/asan PTX_DIR=$(PTX_DIR) CFLAGS="$(ASAN_CFLAGS)" $(ASAN_PROGRAMS:%=$(B)/asan/%)
tests-tsan: $(COMPILER_OBJ)
	@$(MAKE) B=$(B)/tsan PTX_DIR=$(PTX_DIR) CFLAGS="$(TSAN_CFLAGS)" COMPILER_OBJ="$(COMPILER_OBJ)" $(TSAN_PROGRAMS:%=$(B)/tsan/%)
tests-ubsan:
	@$(MAKE) B=$(B)/ubsan PTX_DIR=$(PTX_DIR) CFLAGS="$(UBSAN_CFLAGS)" $(ASAN_PROGRAMS:%=$(B)/ubsan/%)
tests-msan:
	@$(MAKE) B=$(B)/msan PTX_DIR=$(PTX_DIR) CFLAGS="$(MSAN_CFLAGS)" TEST_OBJ=$(B)/msan/tests/msan.o \
		TEST_LINK="$(MSAN_WRAPPED:%=-Wl,--wrap=%)" $(MSAN_PROGRAMS:%=$(B)/msan/%)
MSAN_WRAPPED = SHA256Init SHA256Final

# The unit tests and the corpora of the fuzz targets under one sanitizer.
asan ubsan tsan msan: %: tests-%
	@tests/sanitized $(B)/$*

# Which lines of runtime/ are executed by the suites that use it: at least 80 % of each file (tests/coverage.py). clang's
# counters are in files that processes map and share, so that what a process has counted remains when it ends by _exit or
# a signal. What is not counted, the planner, comes from the plain build.
COVERED_SUITES = unit job gpu nccl perf runtime generated probe tuner lookup python completion oom
COUNTED = -fprofile-instr-generate=$(abspath $(B))/coverage/profiles/%m%c.profraw -fcoverage-mapping -mllvm -runtime-counter-relocation
.PHONY: coverage tests-coverage
tests-coverage: $(COMPILER_OBJ) $(SHARED_OBJ)
	@mkdir -p $(B)/coverage/gen && ln -sfn $(abspath $(PTX_DIR)) $(B)/coverage/gen/ptx
	@$(MAKE) B=$(B)/coverage PTX_DIR=$(PTX_DIR) CC=$(CLANG) COMPILER_OBJ="$(COMPILER_OBJ)" SHARED_OBJ="$(SHARED_OBJ)" FUZZ_SRC= \
		COVERAGE="$(COUNTED)" COVERAGE_LINK=-fprofile-instr-generate tests
coverage:
	@tests/packages $(CHECK_DEPS) llvm
	@$(MAKE) $(PARALLEL) tests-coverage
	@rm -rf $(B)/coverage/profiles
	@BUILD=$(B)/coverage MAKE="$(MAKE)" tests/run $(COVERED_SUITES); failed=$$?; \
		tests/coverage.py $(B)/coverage && exit $$failed

# PyTorch, as pip installs it, takes 6 GB, and is kept until `make clean`. That an import fails only means that pip has to
# install; if pip fails, so does this target.
.PHONY: check-torch
check-torch: all $(addprefix $(B)/tests/virtual_gpu/, libcuda.so.1 libblink-twins.so) $(CUDART)
	@[ -x $(B)/torch/bin/python ] || $(PYTHON) -m venv $(B)/torch
	@$(B)/torch/bin/python -c 'import torch, numpy, mypy' 2>/dev/null || nice $(B)/torch/bin/pip install -q torch numpy mypy
	@BUILD=$(B) MAKE="$(MAKE)" tests/run --full torch torchnccl

.PHONY: mutations
mutations: tests
	@BUILD=$(B) MAKE="$(MAKE)" tests/mutate

.PHONY: bless
bless: all
	@BUILD=$(B) BLESS=1 tests/run golden

# With CC=clang by libFuzzer, guided by coverage; else by the driver of the targets itself. What libFuzzer finds new stays in
# $(B)/libfuzzer/found; `make fuzz-merge CC=clang` puts the few inputs of it that cover more into tests/fuzz/found.
FUZZ_SECONDS ?= 60
FUZZ_CFLAGS = -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FUZZ_NAMES = $(notdir $(FUZZ_SRC:%.c=%))
# The corpus of $$f, with the directories that its list names: the driver reads that for itself.
FUZZ_CORPUS = tests/fuzz/corpus/$$f $$(cat tests/fuzz/corpus/$$f/*.list 2>/dev/null | sed "s,^,tests/fuzz/corpus/$$f/,")
FUZZ_OPTIONS = -timeout=30 -rss_limit_mb=4096 -max_len=65536 -print_final_stats=1 -verbosity=0 -artifact_prefix=crash-
.PHONY: fuzz fuzz-merge tests-libfuzzer
fuzz: $(if $(findstring clang,$(CC)),tests-libfuzzer,tests-asan)
ifneq ($(findstring clang,$(CC)),)
	@export FUZZ_TOPOLOGIES=$(CURDIR)/topologies; for f in $(FUZZ_NAMES); do mkdir -p $(B)/libfuzzer/found/$$f; echo $$f; \
		$(B)/libfuzzer/tests/fuzz/$$f $(FUZZ_OPTIONS) -max_total_time=$(FUZZ_SECONDS) $(B)/libfuzzer/found/$$f \
		$(FUZZ_CORPUS) $$(ls -d tests/fuzz/found/$$f 2>/dev/null) || exit 1; done
else
	@export FUZZ_TOPOLOGIES=$(CURDIR)/topologies; for f in $(FUZZ_NAMES); do \
		$(B)/asan/tests/fuzz/$$f --seconds $(FUZZ_SECONDS) --seed random tests/fuzz/corpus/$$f/* || exit 1; done
endif
tests-libfuzzer:
	@$(MAKE) B=$(B)/libfuzzer CFLAGS="$(FUZZ_CFLAGS)" TEST_LINK=-fsanitize=fuzzer $(FUZZ_SRC:%.c=$(B)/libfuzzer/%)
# Inputs that cover what the files in tests/fuzz/corpus do not. Short ones: their number and size stay small.
fuzz-merge: tests-libfuzzer
	@export FUZZ_TOPOLOGIES=$(CURDIR)/topologies; m=$(B)/libfuzzer/merged; for f in $(FUZZ_NAMES); do \
		rm -rf $$m && mkdir -p $$m $(B)/libfuzzer/found/$$f tests/fuzz/found/$$f && \
		for old in $$(find $(FUZZ_CORPUS) -maxdepth 1 -type f); do cp $$old $$m/old-$$(echo $$old | tr / -) || exit 1; done && \
		$(B)/libfuzzer/tests/fuzz/$$f $(FUZZ_OPTIONS) -max_len=2048 -use_counters=0 -merge=1 $$m tests/fuzz/found/$$f $(B)/libfuzzer/found/$$f && \
		rm -rf tests/fuzz/found/$$f $$m/old-* && \
		if [ "$$(ls $$m)" ]; then mkdir -p tests/fuzz/found/$$f && cp $$m/* tests/fuzz/found/$$f; fi || exit 1; done

# One command for the day there is a GPU: everything that needs one, with a report. Without one, on virtual GPUs.
$(B)/tests/check_gpu/parts: $(B)/tests/check_gpu/parts.o $(RUNTIME_OBJ) $(B)/shared.a
	$(call say,  LD      $@)$(LINK) -o $@ $^ $(RUNTIME_LIBS)
$(B)/tests/check_gpu/parts.ptx: tests/check_gpu/parts.cu tests/check_gpu/parts.h $(KERNEL_SRC) $(PTX_DIR)/flags
	@mkdir -p $(@D)
	$(call say,  PTX     $@)$(PTX_BY_$(PTX_COMPILER)) $(KERNEL_INCLUDE) -o $@ $<
$(B)/tests/check_gpu/parts-twins.so: tests/check_gpu/parts.cu tests/check_gpu/parts.h $(B)/tests/virtual_gpu/libcuda.so.1 $(B)/flags
	@mkdir -p $(@D)
	$(call say,  CC      $@)$(COMPILE) -Itests -Iruntime/cuda -fPIC -shared -x c -o $@ $< -x none $(B)/tests/virtual_gpu/libcuda.so.1
.PHONY: check-gpu
check-gpu: tests
	@BUILD=$(B) tests/check_gpu/check_gpu.py $(CHECK_GPU)

.PHONY: bench bench-peers bench-gpu bench-gpu-sets bench-gpu-rates bench-sizes bench-planning
bench-planning: all
	@BUILD=$(B) tests/bench/planning.py $(if $(OLD),--old $(OLD))
bench-sizes: all $(B)/tests/bench/sizes
	@BUILD=$(B) tests/bench/sizes.sh
bench-gpu bench-gpu-sets bench-gpu-rates: all $(B)/tests/bench/gpu $(addprefix $(B)/tests/virtual_gpu/, libcuda.so.1 libblink-twins.so libnvidia-ml.so.1)
# Root, iproute2.
.PHONY: bench-groups
bench-groups: all
	@tests/bench/groups.py $(B)/blinkc
.PHONY: bench-groups-links
bench-groups-links: all $(B)/tests/job/phase
	@BUILD=$(B) tests/bench/groups_links.py $(BENCH_GROUPS)
.PHONY: bench-matrix-links
bench-matrix-links: all $(B)/tests/job/phase
	@BUILD=$(B) tests/bench/matrix_links.py $(BENCH_MATRIX)
.PHONY: bench-ompi
bench-ompi: all
	@BUILD=$(B) tests/bench/ompi_links.py $(BENCH_OMPI)
.PHONY: bench-links
bench-links: all $(B)/tests/job/launched
	@BUILD=$(B) tests/bench/links.py $(BENCH_LINKS)
.PHONY: bench-predicted
bench-predicted: all $(B)/tests/job/launched
	@BUILD=$(B) tests/bench/predicted.py $(BENCH_PREDICTED)
bench-gpu:
	@BUILD=$(B) tests/bench/gpu.sh $(BENCH_GPU)

bench-gpu-sets:
	@BUILD=$(B) tests/bench/gpu_sets.sh $(BENCH_GPU)

bench-gpu-rates:
	@BUILD=$(B) BEFORE=$(BEFORE) tests/bench/gpu_rates.sh $(BENCH_GPU)

# Open MPI, MPICH, PyTorch and oneCCL take part where they are.
bench-peers: $(B)/tests/bench/peers
	@BUILD=$(B) tests/bench/peers.sh $(BENCH_PEERS)

bench: all $(addprefix $(B)/tests/bench/, bench simulate load) bench-peers bench-planning
	@$(B)/tests/bench/bench
	@$(B)/blinkc -q topologies/dgx1v.xml -o $(B)/bench.json && $(B)/tests/bench/simulate $(B)/bench.json 1073741824 65536 1048576
	@$(B)/blinkc -q topologies/superpod-h100.xml -o $(B)/bench.json && $(B)/tests/bench/simulate $(B)/bench.json 1073741824 1048576
	@$(B)/blinkc -q topologies/superpod-h100-4su.xml -o $(B)/bench.json && $(B)/tests/bench/simulate $(B)/bench.json 1073741824 1048576
	@$(B)/blinkc topology -q --servers 128 topologies/dgx-a100.xml -o $(B)/bench-servers.json && $(B)/blinkc -q $(B)/bench-servers.json -o $(B)/bench.json \
		&& $(B)/tests/bench/simulate $(B)/bench.json 1073741824 20972
	@echo; echo "execute: the schedule on the host backend, and its .cu compiled for the host"
	@$(B)/blinkc -q topologies/dgx1v.xml -o $(B)/bench.json && $(B)/blinkc -q topologies/dgx1v.xml -o $(B)/bench.cu
	@$(CC) -x c -std=gnu11 -O2 -shared -fPIC -Iruntime/include $(B)/bench.cu -o $(B)/bench.so -pthread
	@for f in $(B)/bench.json $(B)/bench.so; do $(B)/blink-perf $$f -b 64K -e 64M -f 4 -c 0 || exit 1; done
	@echo; echo "batch: every set of GPUs of a DGX-1V, all roots, and of a DGX-2; every shape of 2 to 8 GPUs on 8 DGX A100"
	@$(B)/blinkc topology --servers 8 topologies/dgx-a100.xml -o $(B)/bench.json
	@for what in "topologies/dgx1v.xml --collectives allreduce,broadcast" topologies/dgx2.xml "$(B)/bench.json --distinct --sizes 2-8"; do \
		rm -rf $(B)/bench.d; $(B)/blinkc batch $$what -o $(B)/bench.d 2>&1 | grep -E '^(machine|schedules|index|time)' || exit 1; done
	@echo; echo "look-up: a job of a DGX-2"
	@rm -rf $(B)/bench.d; $(B)/blinkc batch -q topologies/dgx2.xml -o $(B)/bench.d && $(B)/tests/bench/load index $(B)/bench.d
	@echo; echo "load: an allgather over 2048 and over 16384 GPUs"
	@$(B)/blinkc -q topologies/abci-2048.xml -c allgather -o $(B)/listed.json && $(B)/blinkc convert $(B)/listed.json --format compact -o $(B)/compact.json
	@$(B)/blinkc -q --synthetic "server:2048 gpu:8 switch:300 net:25 rails" -c allgather -o $(B)/rails.json
	@$(B)/tests/bench/load schedule $(addprefix $(B)/, listed.json compact.json rails.json)
	@echo; echo "execute: an allreduce over 2048 ranks, every element checked; takes 4 GiB"
	@$(B)/blinkc -q topologies/abci-2048.xml -o $(B)/bench.json && $(B)/blink-perf $(B)/bench.json -b 256K -e 256K -n 1 -w 0

.PHONY: lint
lint:
	cppcheck --quiet --error-exitcode=1 --enable=warning,portability --inline-suppr --suppress=normalCheckLevelMaxBranches \
		--suppress=arrayIndexThenCheck \
		-Isrc -Iruntime/include -Iruntime -DBLINK_VERSION='"$(VERSION)"' src runtime
	shellcheck -x -s bash -S warning -e SC2034,SC2154,SC2046,SC2054,SC2206,SC2258 tests/lib.sh tests/suite/*.sh .ci/run
	shellcheck tests/packages tests/run tests/mutate examples/*.sh
	mandoc -Tlint -Wwarning man/*.[1-9]

# ---- install ----

MAN = $(wildcard man/*.[1-9])
HEADERS = $(wildcard runtime/include/*.h)
DATA = $(wildcard topologies/*.xml topologies/*.json schemas/*)
DOCS = README.md SECURITY.md $(wildcard docs/*.*)
EXAMPLES = $(wildcard examples/*.* examples/ci/* examples/jobs/*)
# To the prefix, so that pkg-config may move it.
RELATIVE = $(patsubst $(PREFIX)/%,$${prefix}/%,$(1))

# Where the installed blink-perf looks for libblink; empty: where the system does.
RPATH ?= $$ORIGIN/$(shell realpath -m --relative-to="$(BINDIR)" "$(LIBDIR)")

# Whatever the umask, others can read what is installed, and paths may have spaces.
INSTALL_DIR = install -d -m 755
INSTALL_DATA = install -m 644
INSTALL_PROGRAM = install -m 755

.PHONY: install uninstall installcheck
install: all
	$(call say,  INSTALL $(DESTDIR)$(PREFIX))$(INSTALL_DIR) "$(DESTDIR)$(BINDIR)" "$(DESTDIR)$(LIBDIR)/pkgconfig" "$(DESTDIR)$(INCLUDEDIR)" \
		"$(DESTDIR)$(DATADIR)/blinkc/topologies" "$(DESTDIR)$(DATADIR)/blinkc/schemas" \
		"$(DESTDIR)$(BASHDIR)" "$(DESTDIR)$(ZSHDIR)" "$(DESTDIR)$(FISHDIR)"
	$(call say,  LD      $(B)/blink-perf.installed)$(LINK_PERF) -o $(B)/blink-perf.installed $(RPATH:%=-Wl,-rpath,'%')
	$(Q)$(INSTALL_PROGRAM) $(B)/blinkc "$(DESTDIR)$(BINDIR)"
	$(Q)$(INSTALL_PROGRAM) $(B)/blink-perf.installed "$(DESTDIR)$(BINDIR)/blink-perf"
	$(Q)$(INSTALL_DATA) $(B)/libblink.so.$(VERSION) "$(DESTDIR)$(LIBDIR)"
	$(Q)ln -sf libblink.so.$(VERSION) "$(DESTDIR)$(LIBDIR)/libblink.so.$(SOVERSION)"
	$(Q)ln -sf libblink.so.$(SOVERSION) "$(DESTDIR)$(LIBDIR)/libblink.so"
	$(Q)$(INSTALL_DATA) $(B)/libnccl-tuner-blink.so "$(DESTDIR)$(LIBDIR)"
	$(call say,  LD      $(B)/libblink-nccl.installed)$(LINK_NCCL) -o $(B)/libblink-nccl.installed $(if $(RPATH),-Wl$(comma)-rpath$(comma)'$$ORIGIN:$$ORIGIN/..')
	$(Q)$(INSTALL_DATA) $(B)/libblink-nccl.installed "$(DESTDIR)$(LIBDIR)/libblink-nccl.so.$(VERSION)"
	$(Q)ln -sf libblink-nccl.so.$(VERSION) "$(DESTDIR)$(LIBDIR)/libblink-nccl.so.$(SOVERSION)"
	$(Q)ln -sf libblink-nccl.so.$(SOVERSION) "$(DESTDIR)$(LIBDIR)/libblink-nccl.so"
	$(Q)$(INSTALL_DIR) "$(DESTDIR)$(LIBDIR)/blink"
	$(Q)$(INSTALL_DATA) $(B)/blink/libblink-audit.so "$(DESTDIR)$(LIBDIR)/blink"
	$(Q)ln -sf ../libblink-nccl.so.$(VERSION) "$(DESTDIR)$(LIBDIR)/blink/libnccl.so.2"
	$(Q)$(INSTALL_DATA) $(HEADERS) "$(DESTDIR)$(INCLUDEDIR)"
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(call RELATIVE,$(LIBDIR))|' -e 's|@INCLUDEDIR@|$(call RELATIVE,$(INCLUDEDIR))|' \
		-e 's|@VERSION@|$(VERSION)|' runtime/blink.pc.in >$(B)/blink.pc
	$(Q)$(INSTALL_DATA) $(B)/blink.pc "$(DESTDIR)$(LIBDIR)/pkgconfig"
	$(Q)for p in blinkc blink-perf; do $(INSTALL_DATA) $(B)/completions/$$p.bash "$(DESTDIR)$(BASHDIR)/$$p" && \
		$(INSTALL_DATA) $(B)/completions/$$p.zsh "$(DESTDIR)$(ZSHDIR)/_$$p" && \
		$(INSTALL_DATA) $(B)/completions/$$p.fish "$(DESTDIR)$(FISHDIR)/$$p.fish" || exit 1; done
	$(Q)for f in $(DATA); do $(INSTALL_DATA) $$f "$(DESTDIR)$(DATADIR)/blinkc/$${f%%/*}" || exit 1; done
	$(Q)for m in $(MAN); do $(INSTALL_DIR) "$(DESTDIR)$(MANDIR)/man$${m##*.}" && \
		$(INSTALL_DATA) $$m "$(DESTDIR)$(MANDIR)/man$${m##*.}" || exit 1; done
	$(Q)for f in $(DOCS) $(EXAMPLES); do d="$(DESTDIR)$(DOCDIR)/$$(dirname $$f)" && $(INSTALL_DIR) "$$d" && \
		case $$f in *.sh) $(INSTALL_PROGRAM) $$f "$$d" ;; *) $(INSTALL_DATA) $$f "$$d" ;; esac || exit 1; done

# Directories stay where others may use them: rmdir fails on one that is not empty, and is meant to.
uninstall:
	$(call say,  REMOVE  $(DESTDIR)$(PREFIX))rm -f "$(DESTDIR)$(BINDIR)/blinkc" "$(DESTDIR)$(BINDIR)/blink-perf"
	$(Q)for f in $(foreach l, libblink.so libblink-nccl.so, $l $l.$(SOVERSION) $l.$(VERSION)) blink/libblink-audit.so blink/libnccl.so.2 \
		libnccl-tuner-blink.so pkgconfig/blink.pc; do rm -f "$(DESTDIR)$(LIBDIR)/$$f"; done
	$(Q)rmdir "$(DESTDIR)$(LIBDIR)/blink" 2>/dev/null || :
	$(Q)for f in $(notdir $(HEADERS)); do rm -f "$(DESTDIR)$(INCLUDEDIR)/$$f"; done
	$(Q)for m in $(notdir $(MAN)); do rm -f "$(DESTDIR)$(MANDIR)/man$${m##*.}/$$m"; done
	$(Q)for p in blinkc blink-perf; do rm -f "$(DESTDIR)$(BASHDIR)/$$p" "$(DESTDIR)$(ZSHDIR)/_$$p" "$(DESTDIR)$(FISHDIR)/$$p.fish"; done
	$(Q)rm -rf "$(DESTDIR)$(DATADIR)/blinkc"
	$(Q)for f in $(DOCS) $(EXAMPLES); do rm -f "$(DESTDIR)$(DOCDIR)/$$f"; done
	$(Q)for d in docs examples/ci examples/jobs examples ""; do rmdir "$(DESTDIR)$(DOCDIR)/$$d" 2>/dev/null || :; done

installcheck:
	@BUILD=$(B) MAKE="$(MAKE)" tests/run install

# For pip, with libblink in it. What libblink needs but glibc is linked into it, where that can be had.
PYTHON ?= python3
MD_ARCHIVE := $(wildcard $(shell $(CC) -print-file-name=libmd.a 2>/dev/null))
.PHONY: wheel
wheel: $(B)/wheel/libblink.so.$(SOVERSION)
	$(call say,  WHEEL   $(B)/wheel)rm -f $(B)/wheel/*.whl
	$(Q)$(PYTHON) runtime/python/wheel.py $(VERSION) $< $(B)/wheel LICENSE $(if $(MD_ARCHIVE),$(wildcard /usr/share/doc/libmd-dev/copyright))

$(B)/wheel/libblink.so.$(SOVERSION): $(B)/flags $(RUNTIME_OBJ) $(B)/shared.a runtime/libblink.map
	@mkdir -p $(@D)
	$(call say,  LD      $@)$(LINK) -shared -s -Wl,-soname,$(@F) -Wl,--version-script,runtime/libblink.map -o $@ $(RUNTIME_OBJ) \
		$(B)/shared.a $(if $(MD_ARCHIVE),$(MD_ARCHIVE),$(MD_LIBS)) -lm -ldl -pthread

.PHONY: dist distcheck
dist:
	@mkdir -p $(B)
	git archive --prefix=blinkc-$(VERSION)/ HEAD | gzip -n >$(B)/blinkc-$(VERSION).tar.gz

distcheck: dist
	rm -rf $(B)/distcheck && mkdir -p $(B)/distcheck
	tar -xzf $(B)/blinkc-$(VERSION).tar.gz -C $(B)/distcheck
	$(MAKE) -C $(B)/distcheck/blinkc-$(VERSION) check install DESTDIR=$(abspath $(B))/distcheck/root

# Of what is committed, as it is, by the Debian of this machine; what make and the environment were told does not reach it.
DEB = $(abspath $(B))/deb
.PHONY: deb
deb:
	rm -rf $(DEB) && mkdir -p $(DEB)
	git archive --prefix=blinkc-$(VERSION)/ HEAD | tar -x -C $(DEB)
	cd $(DEB)/blinkc-$(VERSION) && env -i PATH="$$PATH" HOME="$$HOME" LC_ALL=C.UTF-8 DEB_BUILD_OPTIONS="$$DEB_BUILD_OPTIONS" \
		dpkg-buildpackage -us -uc -jauto
	@echo && cd $(DEB) && ls -1 *.deb

.PHONY: clean
clean:
	$(call say,  CLEAN   $(B))rm -rf $(B)

# `make -j clean all` cleans first, too.
ifneq ($(filter clean,$(MAKECMDGOALS)),)
$(filter-out clean,$(MAKECMDGOALS)) $(B)/flags: | clean
endif

-include $(shell find $(B) -type f -name '*.d' 2>/dev/null)
