# SPDX-License-Identifier: GPL-2.0-or-later
# What the Makefiles of our own benchmarks share. Set before: NAME, the compiler's variable COMPILER,
# LDLIBS. `tools/setup/install` and the source archive of hosts (source_archive.py) take it along.
O       ?= ../../build/$(NAME)
CFLAGS  ?= -O2 -g
PREFIX  ?= /usr/local
CLANG_FORMAT ?= clang-format
VERSION ?= $(shell sed -n 's/^version = "\(.*\)"/\1/p' ../rocelab/pyproject.toml)
Q       := $(if $(V),,@)

SOURCES := $(wildcard *.c)
OBJECTS := $(SOURCES:%.c=$(O)/obj/%.o)

override CFLAGS += -std=gnu11 -Wall -Wextra -Wshadow -Wstrict-prototypes -Werror=implicit
override CPPFLAGS += -DBENCHMARK_VERSION='"$(VERSION)"'

all: $(O)/$(NAME)

$(O)/$(NAME): $(OBJECTS)
	$(Q)$($(COMPILER)) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

$(O)/obj/%.o: %.c | $(O)/obj
	$(Q)$($(COMPILER)) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(O)/obj:
	$(Q)mkdir -p $@

install: all
	install -D -m 755 $(O)/$(NAME) $(DESTDIR)$(PREFIX)/bin/$(NAME)

format:
	$(CLANG_FORMAT) -i *.c *.h
format-check:
	$(CLANG_FORMAT) --dry-run --Werror *.c *.h

clean:
	$(Q)rm -rf $(O)/obj $(O)/$(NAME)

help:
	@echo 'Targets: all, install (to $$DESTDIR$$PREFIX/bin), format, format-check, clean'
	@echo 'Variables: O=DIR (results: build/$(NAME) of the repository), $(COMPILER), CFLAGS, V=1'

.PHONY: all install format format-check clean help
.DELETE_ON_ERROR:
-include $(wildcard $(O)/obj/*.d)
