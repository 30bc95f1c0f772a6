# SPDX-License-Identifier: GPL-2.0-only
# Tools and flags, for every Makefile of this room. All may be given on the command line.

EBPF_DIR := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))/..)
O	?= $(EBPF_DIR)/../build/ebpf
override O := $(abspath $(O))

# Debian names clang and its tools by version; the plain name, or the newest that is there
newest	= $(or $(shell command -v $(1)),$(lastword $(sort $(wildcard /usr/bin/$(1)-[0-9][0-9]))),$(1))
CC	?= cc
CLANG	?= $(call newest,clang)
CLANG_FORMAT ?= $(call newest,clang-format)
BPFTOOL	?= $(or $(shell command -v bpftool),$(wildcard /usr/sbin/bpftool),bpftool)
PREFIX	?= /usr/local
# one version for the whole of rocelab
VERSION	?= $(or $(shell sed -n 's/^version = "\(.*\)"/\1/p' $(EBPF_DIR)/../tools/rocelab/pyproject.toml 2>/dev/null),unknown)

WARNINGS := -Wall -Wextra -Werror
CFLAGS	?= -O2 -g
override CFLAGS += -std=gnu11 $(WARNINGS)
override CPPFLAGS += -D_GNU_SOURCE

# asm/types.h of the host's headers; __TARGET_ARCH_* as bpf_tracing.h spells it
MULTIARCH := $(shell $(CC) -print-multiarch 2>/dev/null)
BPF_ARCH := $(shell uname -m | sed -e 's/x86_64/x86/' -e 's/aarch64/arm64/' -e 's/ppc64le/powerpc/' -e 's/riscv64/riscv/')
# v3 has compare-and-swap and 32-bit arithmetic: Linux 5.12; BPF programs do not use all their arguments
BPF_CFLAGS := -target bpf -mcpu=v3 -O2 -g -std=gnu11 $(WARNINGS) -Wno-unused-parameter \
	-D__TARGET_ARCH_$(BPF_ARCH) $(if $(MULTIARCH),-isystem /usr/include/$(MULTIARCH))

ifeq ($(V),1)
Q :=
else
Q := @
Q_CC	= @echo "  CC       $(notdir $@)";
Q_GEN	= @echo "  GEN      $(notdir $@)";
Q_CLANG	= @echo "  CLANG    $(notdir $@)";
Q_SKEL	= @echo "  GEN-SKEL $(notdir $@)";
Q_LINK	= @echo "  LINK     $(notdir $@)";
Q_CLEAN	= @echo "  CLEAN    $(CURDIR)";
Q_TEST	= @echo "  TEST     $(notdir $@)";
MAKEFLAGS += --no-print-directory
endif
