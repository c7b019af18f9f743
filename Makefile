# ridge: build, test, install. `make help` lists the targets.
# SPDX-License-Identifier: Apache-2.0

CC       ?= gcc
AR       ?= ar
CFLAGS   ?= -O2 -g
PREFIX   ?= /usr/local
DESTDIR  ?=
SANITIZE ?=
SECONDS  ?= 30
CUDA     ?= auto
JOBS     ?= $(shell nproc 2>/dev/null || echo 1)
VERSION  := $(shell cat VERSION)

V ?= 0
Q := $(if $(filter 1,$(V)),,@)
say = @$(if $(filter 1,$(V)),:,printf '  %-5s %s\n' $(1) $(2))

# demo and check build in parallel, unless the user has said how many jobs there may be.
in_parallel = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(JOBS))

B := build$(if $(SANITIZE),/san)
SHELL := /bin/bash

# What the code needs; the user's CPPFLAGS, CFLAGS and LDFLAGS come after and win.
PKGS := gsl yaml-0.1 jansson sqlite3 libmd
RG_CPPFLAGS := -Isim -D_POSIX_C_SOURCE=200809L -DRG_VERSION='"$(VERSION)"' -DRG_PREFIX='"$(PREFIX)"' \
  $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
RG_CFLAGS := -std=c11 -ffp-contract=off -fno-math-errno -fopenmp -Wall -Wextra -Werror -Wshadow \
  -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wundef -Wvla -Wformat=2 \
  -Wimplicit-fallthrough
RG_LDLIBS := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lm
ifneq ($(SANITIZE),)
RG_CFLAGS += -fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all
endif

SRC     := $(sort $(wildcard sim/*/*.c))
MAIN    := sim/cli/main.c
OBJ     := $(SRC:%.c=$(B)/%.o)
LIBOBJ  := $(filter-out $(B)/sim/cli/main.o,$(OBJ))
UNIT    := $(patsubst tests/unit/%.c,$(B)/tests/unit/%,$(sort $(wildcard tests/unit/*/test_*.c)))
BENCH   := $(patsubst tests/bench/%.c,$(B)/tests/bench/%,$(sort $(wildcard tests/bench/bench_*.c)))
FUZZ    := $(patsubst tests/fuzz/%.c,$(B)/tests/fuzz/%,$(filter-out %/fuzz_main.c,$(sort $(wildcard tests/fuzz/fuzz_*.c))))

.PHONY: all
all: $(B)/ridge ## build ridge, libridge.a and, with nvcc, ridge-probe
.DEFAULT_GOAL := all

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(RG_CPPFLAGS) $(CPPFLAGS) $(RG_CFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/libridge.a: $(LIBOBJ)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

$(B)/ridge: $(B)/sim/cli/main.o $(B)/libridge.a
	$(call say,LD,$@)
	$(Q)$(CC) $(RG_CFLAGS) $(CFLAGS) $(LDFLAGS) $^ $(RG_LDLIBS) $(LDLIBS) -o $@

$(B)/tests/unit/%: tests/unit/%.c tests/unit/unit.h $(B)/libridge.a
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(RG_CPPFLAGS) -Itests/unit $(CPPFLAGS) $(RG_CFLAGS) $(CFLAGS) $(LDFLAGS) -MMD -MP $< \
	  $(B)/libridge.a -lcmocka $(RG_LDLIBS) $(LDLIBS) -o $@

$(B)/tests/bench/%: tests/bench/%.c $(B)/libridge.a
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(RG_CPPFLAGS) $(CPPFLAGS) $(RG_CFLAGS) $(CFLAGS) $(LDFLAGS) -MMD -MP $< \
	  $(B)/libridge.a $(RG_LDLIBS) $(LDLIBS) -o $@

# Fuzz targets define LLVMFuzzerTestOneInput; plain builds replay the corpus through fuzz_main.c.
$(B)/tests/fuzz/%: tests/fuzz/%.c tests/fuzz/fuzz_main.c $(B)/libridge.a
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(RG_CPPFLAGS) $(CPPFLAGS) $(RG_CFLAGS) $(CFLAGS) $(LDFLAGS) -MMD -MP $< \
	  tests/fuzz/fuzz_main.c $(B)/libridge.a $(RG_LDLIBS) $(LDLIBS) -o $@

-include $(OBJ:.o=.d) $(UNIT:=.d) $(BENCH:=.d) $(FUZZ:=.d)

# ridge-probe and the CUDA kernels; builds what it can without nvcc.
-include kernels/kernels.mk

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | \
	  awk -F'\t' '{printf "  make %-14s %s\n", $$1, $$2}'
	@echo "Variables: CC CFLAGS LDFLAGS PREFIX DESTDIR SANITIZE=address,undefined SECONDS=60 CUDA=auto|no|DIR"

.PHONY: deps
deps: ## install the packages that build and tests need (Debian, as root)
	@tests/deps.sh

.PHONY: demo
demo: ## install what is missing, build, run the main job, leave a report in build/demo
	@tests/deps.sh
	@$(MAKE) --no-print-directory $(in_parallel) all
	@examples/demo.sh $(B)

.PHONY: tests
tests: all $(UNIT) $(FUZZ) ## build all tests

.PHONY: check
check: ## install what tests need, build and run all tests
	@tests/deps.sh
	@$(MAKE) --no-print-directory $(in_parallel) tests
	@tests/run.sh $(B)

.PHONY: lint
lint: all ## layers, headers, units, options against help and man page, format, clang-tidy, shellcheck
	@tests/lint/run.sh $(B)

.PHONY: fuzz
fuzz: ## fuzz every parser with clang's libFuzzer for SECONDS each
	@tests/fuzz/run.sh $(SECONDS)

.PHONY: cover
cover: ## line coverage of the tests into build/cover
	@tests/cover.sh

.PHONY: bench
bench: all $(BENCH) ## instruction counts and rates of the hot paths
	@tests/bench/run.sh $(B)

.PHONY: install
install: all ## install under DESTDIR/PREFIX
	@tests/install.sh $(B) "$(DESTDIR)$(PREFIX)"

.PHONY: clean
clean: ## remove build/
	rm -rf build
