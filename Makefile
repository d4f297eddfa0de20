# Builds the C core's tests without Node: `make test` (ASan + UBSan), `make valgrind`, `make fuzz`.
# Variables: CC (gcc or clang), BUILD (output folder), FUZZ_SECONDS (per fuzz target).

# make predefines CC as cc, which ?= would keep.
ifeq ($(origin CC),default)
CC := gcc
endif
BUILD ?= build/c-$(notdir $(CC))
FUZZ_SECONDS ?= 10

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
        -Wvla -Wformat=2 -Wundef -Wswitch-enum -Werror
CPPFLAGS := -Isrc -I$(BUILD)/made -D_GNU_SOURCE
CFLAGS := -std=c17 -g -O1 -fno-omit-frame-pointer -fvisibility=hidden -fstack-protector-strong $(WARN)
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
LIBS := -lcjson -luv -ldl -lpthread

CORE := $(wildcard src/core/*.c src/sandbox/*.c src/providers/*.c src/providers/*/*.c src/providers/*/*/*.c) \
        src/guard/open.c src/guard/remove.c
SUPPORT := $(wildcard test/core/support/*.c)
TESTS := $(patsubst test/core/%.c,%,$(wildcard test/core/test_*.c))
# As run: a program, and for some once more with an argument.
RUNS := $(TESTS) test_guard:scan
FUZZERS := $(patsubst test/fuzz/%.c,%,$(wildcard test/fuzz/fuzz_*.c))

# One object tree per flavour: asan (tests), plain (valgrind), fuzz (clang's libFuzzer).
asan_FLAGS := $(SANITIZE) -DSBX_TEST_ALLOC -DSBX_NO_DEEPBIND
plain_FLAGS := -DSBX_TEST_ALLOC
fuzz_FLAGS := $(SANITIZE) -fsanitize=fuzzer-no-link -DSBX_NO_DEEPBIND

# The runner's shell programs, as a header.
PROGRAMS := $(BUILD)/made/runner_programs.h
$(PROGRAMS): scripts/embed.sh $(wildcard src/providers/remote/runner/*.sh)
	@mkdir -p $(@D)
	sh scripts/embed.sh -o $@ src/providers/remote/runner

define flavour
$(BUILD)/$(1)/%.o: %.c | $(PROGRAMS)
	@mkdir -p $$(@D)
	$$(CC) $$(CPPFLAGS) $$(CFLAGS) $$($(1)_FLAGS) -MMD -MP -c -o $$@ $$<
$(1)_OBJS := $$(CORE:%.c=$(BUILD)/$(1)/%.o)
$(1)_SUPPORT := $$(SUPPORT:%.c=$(BUILD)/$(1)/%.o)
endef
$(foreach f,asan plain fuzz,$(eval $(call flavour,$(f))))

.SECONDARY:
.PHONY: all test headers valgrind fuzz guard example tidy clean

all: $(TESTS:%=$(BUILD)/asan/%) guard build/bench_server

$(BUILD)/asan/test_%: $(BUILD)/asan/test/core/test_%.o $(asan_OBJS) $(asan_SUPPORT)
	$(CC) $(SANITIZE) -o $@ $^ -lcmocka $(LIBS)
$(BUILD)/plain/test_%: $(BUILD)/plain/test/core/test_%.o $(plain_OBJS) $(plain_SUPPORT)
	$(CC) -o $@ $^ -lcmocka $(LIBS)
$(BUILD)/fuzz/fuzz_%: $(BUILD)/fuzz/test/fuzz/fuzz_%.o $(fuzz_OBJS)
	$(CC) $(SANITIZE) -fsanitize=fuzzer -o $@ $^ $(LIBS)

# The helper process of the local provider; the tests find it through SBX_GUARD.
# sbx_guard_scan looks for its children in another way, for systems that do not list them.
GUARD := $(wildcard src/guard/*.c)
GUARD_HEADERS := $(wildcard src/guard/*.h)
guard: $(BUILD)/sbx_guard $(BUILD)/sbx_guard_scan
$(BUILD)/sbx_guard: $(GUARD) $(GUARD_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $(GUARD)
$(BUILD)/sbx_guard_scan: $(GUARD) $(GUARD_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -DSBX_TEST_PROC_SCAN -o $@ $(GUARD)

headers:
	@CC="$(CC)" CXX="$(CXX)" sh test/core/test_headers.sh

# A C program that uses the library on its own.
example: $(BUILD)/example_local guard
$(BUILD)/example_local: $(BUILD)/plain/examples/local.o $(plain_OBJS)
	$(CC) -o $@ $^ $(LIBS)

# What the benchmarks measure the clients against: a server, and the same requests by plain libcurl.
build/bench_server: bench/vendor/server.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -O2 -o $@ $<
build/bench_curl: bench/vendor/curl.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -O2 -o $@ $< -lcurl

build/bench_bwrap: bench/bwrap.c $(GUARD) $(GUARD_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -O2 -o $@ $< src/guard/seccomp_tables.c

# The core as it is built for use, without what tests need of it.
build/bench_timers: bench/timers.c $(CORE) $(PROGRAMS)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -O2 -o $@ $< $(CORE) $(LIBS)

test: all headers
	@SBX_GUARD=$(abspath $(BUILD))/sbx_guard sh test/core/run.sh $(BUILD)/asan $(RUNS)

valgrind: $(TESTS:%=$(BUILD)/plain/%) guard
	@set -e; for t in $(RUNS); do echo "== $$t (valgrind)"; a=$${t#$${t%%:*}}; \
	  SBX_GUARD=$(abspath $(BUILD))/sbx_guard SBX_VALGRIND=1 valgrind -q --child-silent-after-fork=yes --leak-check=full \
	    --show-leak-kinds=definite,indirect,possible --errors-for-leak-kinds=definite,indirect,possible \
	    --track-fds=no --error-exitcode=99 --suppressions=test/core/valgrind.supp $(BUILD)/plain/$${t%%:*} $${a#:}; done

fuzz: $(FUZZERS:%=fuzz-%)
fuzz-%: $(BUILD)/fuzz/%
	@mkdir -p $(BUILD)/corpus/$*; echo "== $*"; seeds=test/fuzz/corpus/$*; test -d $$seeds || seeds=; \
	  $< -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=10 -verbosity=0 -print_final_stats=1 \
	    -artifact_prefix=$(BUILD)/ $(BUILD)/corpus/$* $$seeds

# One file at a time: clang-tidy 14 misjudges va_list from the second file on.
tidy: $(PROGRAMS)
	@printf '%s\n' $(sort $(CORE) $(GUARD)) | xargs -n 1 -P 2 sh -c 'clang-tidy --quiet "$$0" -- $(CPPFLAGS) -std=c17 2>/dev/null'

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
