# kernels/kernels.mk: ridge-probe, its CUDA kernels, and their CPU emulation. Included by Makefile.
# CUDA=auto finds nvcc on the path or under /usr/local/cuda, CUDA=no builds without kernels,
# CUDA=DIR takes that toolkit. CUDA_TARGETS lists the architectures with code of their own; PTX of
# sm_80 serves the others (Ada, Blackwell workstations) through the driver's compiler.
# SPDX-License-Identifier: Apache-2.0

CXX          ?= g++
CUDA_TARGETS ?= sm_80 sm_90a sm_100

ifeq ($(CUDA),auto)
# nvcc may be a script that calls the real one elsewhere, so it is asked where it lies.
CUDA_DIR := $(realpath $(shell $(firstword $(shell command -v nvcc 2>/dev/null) \
  $(wildcard $(CUDA_HOME)/bin/nvcc /usr/local/cuda/bin/nvcc) false) \
  --dryrun -x cu /dev/null 2>&1 | sed -n 's/^.. TOP=//p' | head -n 1))
else ifeq ($(CUDA),no)
CUDA_DIR :=
else
CUDA_DIR := $(CUDA)
ifeq ($(wildcard $(CUDA_DIR)/bin/nvcc),)
$(error CUDA=$(CUDA): no bin/nvcc there; give the toolkit's folder, or CUDA=no)
endif
endif
CUDA_STATE := $(if $(CUDA_DIR),$(CUDA_DIR) $(CUDA_TARGETS),no)

CUDA_KERNELS := $(sort $(wildcard kernels/*.cu))
PROBE_SRC    := $(sort $(wildcard kernels/probe/*.c))
PROBE_OBJ    := $(PROBE_SRC:%.c=$(B)/%.o) $(CUDA_KERNELS:kernels/%.cu=$(B)/kernels/reference_%.o)
EMU_SRC      := $(sort $(wildcard kernels/emu/*.cc))
EMU_OBJ      := $(EMU_SRC:%.cc=$(B)/%.o) $(CUDA_KERNELS:kernels/%.cu=$(B)/kernels/emu/%.o)
FATBIN       := $(if $(CUDA_DIR),$(CUDA_KERNELS:kernels/%.cu=$(B)/kernels/%.fatbin))

# cp.async and mma.sync need sm_80; kernels/*_sm90a.cu need that one target and nothing else.
cuda_gencode = $(foreach t,$(1),-gencode arch=$(t:sm_%=compute_%),code=$(t))
cuda_flags = $(if $(filter %_sm90a,$(1)),$(call cuda_gencode,$(filter sm_90a,$(CUDA_TARGETS))),\
  $(call cuda_gencode,$(CUDA_TARGETS)) -gencode arch=compute_80,code=compute_80)
# A kernel that spills registers fails the build.
NVCC_FLAGS ?= -O3 -std=c++17 -Xptxas -v,-warn-spills,-Werror -compress-mode=size

CUDA_CPPFLAGS := -Ikernels -Ikernels/probe
CUPTI_HEADER  := $(if $(CUDA_DIR),$(firstword $(wildcard $(addsuffix /cupti_range_profiler.h,\
  $(CUDA_DIR)/include $(CUDA_DIR)/extras/CUPTI/include /usr/include))))
ifneq ($(CUPTI_HEADER),)
CUDA_CPPFLAGS += -DRG_HAVE_CUPTI=1 -Ikernels/compat $(addprefix -isystem ,$(sort $(filter-out /usr/include,\
  $(patsubst %/,%,$(dir $(CUPTI_HEADER))) $(wildcard $(CUDA_DIR)/include))))
else
CUDA_CPPFLAGS += -DRG_HAVE_CUPTI=0
endif

all: $(B)/ridge-probe

# Objects depend on which toolkit there is: this file changes when that does.
$(B)/kernels/toolkit: FORCE
	@mkdir -p $(@D)
	@echo '$(CUDA_STATE)' | cmp -s - $@ || echo '$(CUDA_STATE)' >$@
.PHONY: FORCE
FORCE:

$(B)/kernels/probe/%.o: kernels/probe/%.c $(B)/kernels/toolkit
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(RG_CPPFLAGS) $(CUDA_CPPFLAGS) $(CPPFLAGS) $(RG_CFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

# The reference at the top of a kernel's file is plain C.
$(B)/kernels/reference_%.o: kernels/%.cu
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(RG_CPPFLAGS) -Ikernels -DRG_HOST $(CPPFLAGS) $(RG_CFLAGS) $(CFLAGS) -MMD -MP -x c -c $< -o $@

$(B)/kernels/%.fatbin: kernels/%.cu $(B)/kernels/toolkit
	@mkdir -p $(@D)
	$(call say,NVCC,$<)
	$(Q)$(CUDA_DIR)/bin/nvcc -fatbin $(NVCC_FLAGS) $(call cuda_flags,$*) -Ikernels -MMD -MP -MF $@.d $< -o $@ \
	  2>$(@:.fatbin=.ptxas) || { cat $(@:.fatbin=.ptxas) >&2; rm -f $@; exit 1; }

# One assembler file that holds all device code, and the table that names it.
$(B)/kernels/embedded.S: $(FATBIN) $(B)/kernels/toolkit kernels/kernels.mk
	@mkdir -p $(@D)
	@{ for f in $(FATBIN); do n=$$(basename $$f .fatbin); \
	  printf '.section .rodata\n.balign 64\n.globl rg_image_%s\nrg_image_%s:\n.incbin "%s"\n.byte 0\n' $$n $$n $$f; \
	  done; printf '.section .note.GNU-stack,"",%%progbits\n'; } >$@
$(B)/kernels/embedded.c: $(B)/kernels/embedded.S
	@{ printf '/* written by kernels.mk */\n#include <stddef.h>\n#include "embedded.h"\n'; \
	  for f in $(FATBIN); do printf 'extern const unsigned char rg_image_%s[];\n' $$(basename $$f .fatbin); done; \
	  printf 'const rg_embedded_image rg_embedded[] = {\n'; \
	  for f in $(FATBIN); do n=$$(basename $$f .fatbin); case $$n in *_sm90a) o=true;; *) o=false;; esac; \
	    printf '    {"%s", rg_image_%s, %s},\n' $$n $$n $$o; done; \
	  printf '    {NULL, NULL, false},\n};\nconst int rg_embedded_count = %d;\n' $(words $(FATBIN)); } >$@

$(B)/kernels/embedded_table.o: $(B)/kernels/embedded.c
	$(Q)$(CC) $(RG_CPPFLAGS) -Ikernels/probe $(CPPFLAGS) $(RG_CFLAGS) $(CFLAGS) -c $< -o $@
$(B)/kernels/embedded_data.o: $(B)/kernels/embedded.S
	$(Q)$(CC) $(CFLAGS) -c $< -o $@

$(B)/ridge-probe: $(PROBE_OBJ) $(B)/kernels/embedded_table.o $(B)/kernels/embedded_data.o $(B)/libridge.a
	$(call say,LD,$@)
	$(Q)$(CC) $(RG_CFLAGS) $(CFLAGS) $(LDFLAGS) $^ -Wl,--as-needed $(RG_LDLIBS) -ldl $(LDLIBS) -o $@

# The emulated driver: the same kernels' source on the CPU, as a libcuda.so.1 for tests.
$(B)/kernels/emu/%.o: kernels/emu/%.cc
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CXX) -std=c++17 -O2 -g -fPIC -Wall -Wextra -Werror -Ikernels -MMD -MP -c $< -o $@
$(B)/kernels/emu/%.o: kernels/%.cu
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CXX) -std=c++17 -O1 -fPIC -Wall -Wextra -Werror -Wno-unknown-pragmas -Ikernels -MMD -MP -x c++ -c $< -o $@
$(B)/kernels/emu/libcuda.so.1: $(EMU_OBJ)
	$(call say,LD,$@)
	$(Q)$(CXX) -shared -Wl,-soname,libcuda.so.1 $^ -o $@

tests: $(B)/kernels/emu/libcuda.so.1

-include $(PROBE_OBJ:.o=.d) $(EMU_OBJ:.o=.d) $(FATBIN:=.d)

.PHONY: gpu-validate
gpu-validate: all ## on a GPU machine: calibrate, check, time, count, compare with predictions
	@tests/gpu/validate.sh $(B) $(PROBE_OPTIONS)
