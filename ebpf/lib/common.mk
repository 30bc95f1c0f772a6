# SPDX-License-Identifier: GPL-2.0-only
# Build one probe. The Makefile that includes this has set
#   TOOL     its name: TOOL.c is its main file, TOOL.bpf.c (and every *.bpf.c) its BPF programs;
#            only with some is it linked with libbpf
#   OBJS     objects of its user space from this folder, except $(TOOL).o
#   LIB_OBJS objects from ../lib
# and may set LDLIBS_TOOL. Results go to $(O)/$(TOOL), objects to $(O)/obj/$(TOOL).

LIB_DIR	:= $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
include $(LIB_DIR)/defs.mk
include $(LIB_DIR)/tables.mk

override CPPFLAGS += -DROCELAB_VERSION='"$(VERSION)"'

OUT	:= $(O)/obj/$(TOOL)
BPF_SRC	:= $(wildcard *.bpf.c)
SKELS	:= $(BPF_SRC:%.bpf.c=$(OUT)/%.skel.h)
BPF_LIBS := $(if $(BPF_SRC),-lbpf -lelf -lz)
ALL_OBJS := $(addprefix $(OUT)/,$(TOOL).o $(OBJS)) $(addprefix $(OUT)/lib/,$(LIB_OBJS))

all: $(O)/$(TOOL)

$(O)/$(TOOL): $(ALL_OBJS)
	$(Q_LINK)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(BPF_LIBS) -lm $(LDLIBS_TOOL) -o $@

# user space may include any skeleton
$(OUT)/%.o: %.c $(SKELS) | $(OUT) $(TABLE_HEADERS)
	$(Q_CC)$(CC) $(CPPFLAGS) $(CFLAGS) -I$(OUT) -I$(LIB_DIR) -MMD -MP -c $< -o $@

$(OUT)/lib/%.o: $(LIB_DIR)/%.c | $(OUT)/lib $(TABLE_HEADERS)
	$(Q_CC)$(CC) $(CPPFLAGS) $(CFLAGS) -I$(LIB_DIR) -MMD -MP -c $< -o $@

# a clang that fails deletes the list of what the object depends on: then the object must go, too
$(OUT)/%.bpf.o: %.bpf.c | $(OUT) $(TABLE_HEADERS)
	$(Q_CLANG)rm -f $@; $(CLANG) $(BPF_CFLAGS) -I$(LIB_DIR) -MMD -MP -MT $@ -c $< -o $@.raw
	$(Q)$(BPFTOOL) gen object $@ $@.raw

# written aside: an interrupted bpftool leaves no half a header
$(OUT)/%.skel.h: $(OUT)/%.bpf.o
	$(Q_SKEL)$(BPFTOOL) gen skeleton $< name $(subst -,_,$*)_bpf > $@.tmp && mv $@.tmp $@

$(OUT) $(OUT)/lib:
	$(Q)mkdir -p $@

clean:
	$(Q_CLEAN)rm -rf $(OUT) $(O)/$(TOOL)

.PHONY: all clean
.DELETE_ON_ERROR:
.SECONDARY:
-include $(wildcard $(OUT)/*.d $(OUT)/lib/*.d)
