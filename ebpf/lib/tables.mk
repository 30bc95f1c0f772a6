# SPDX-License-Identifier: GPL-2.0-only
# Generate headers from the tables at the top of the checkout: $(TABLES)/stages.h from tables/stages.csv.

TABLES	:= $(O)/obj/tables
TABLE_HEADERS := $(patsubst $(EBPF_DIR)/lib/tables/%.awk,$(TABLES)/%.h,\
	$(filter-out %/columns.awk,$(wildcard $(EBPF_DIR)/lib/tables/*.awk)))
override CPPFLAGS += -I$(TABLES)
override BPF_CFLAGS += -I$(TABLES)

# Renamed into place, because probes that are built in parallel generate the same file.
$(TABLES)/%.h: $(EBPF_DIR)/../tables/%.csv $(EBPF_DIR)/lib/tables/%.awk $(EBPF_DIR)/lib/tables/columns.awk
	$(Q_GEN)mkdir -p $(TABLES) && { \
	echo '/* made from tables/$*.csv */'; \
	awk -f $(EBPF_DIR)/lib/tables/columns.awk -f $(EBPF_DIR)/lib/tables/$*.awk $<; \
	} > $@.$$$$ && mv $@.$$$$ $@ || { rm -f $@.$$$$; exit 1; }
