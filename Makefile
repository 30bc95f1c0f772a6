# SPDX-License-Identifier: GPL-2.0-or-later
# Thin on purpose: each room builds itself. `make help` lists the targets for users.

# the default of tables/kernel_lines.csv
LINE    ?= $(shell sed -n "s/,yes$$//p" tables/kernel_lines.csv)
VARIANT ?= instrumented
BUILD   := $(CURDIR)/build
CACHE   := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/rocelab
PYTHON  ?= python3
BIN     := $(CURDIR)/.venv/bin
PREFIX  ?= $(if $(filter 0,$(shell id -u)),/usr/local,$(HOME)/.local)

# what decides the Python package's compiled part
RUST := $(shell find tools/rocelab/crates tables -name "*.rs" -o -name "*.toml" -o -name "*.csv" 2>/dev/null)

.PHONY: can-enter help setup develop apt apt-develop lock docs image module each-patch changed-module module-variants debug-kernel debug-module probes selftests watch-kernels siw mpibench perftest pingpong drivercheck lockstep demo check test test-here test-machines test-long test-debug test-kernels soak fuzz others prometheus tshark lint check-lint check-rust test-rust test-ebpf test-python test-quick coverage for-machines ci bench install uninstall clean
.DELETE_ON_ERROR:
# Tests start Python hundreds of times: without bytecode, each start compiles rocelab.
unexport PYTHONDONTWRITEBYTECODE
# Cargo, and a make that a test starts, would look for the job server of this one. The system's libzstd,
# if it can be linked, saves cargo a quarter of its work.
apart := env -u MAKEFLAGS -u MFLAGS $$(pkg-config --exists libzstd 2>/dev/null && echo ZSTD_SYS_USE_PKG_CONFIG=1)
# recursive make with jobs side by side, unless the user has said how many
lanes = +@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(1))

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' $(MAKEFILE_LIST) | awk -F '\t' '{printf "  make %-12s %s\n", $$1, $$2}'

demo: can-enter  ## two nodes, the demo plan, a table and a report (everything it needs first)
	$(call lanes,2) setup probes
	@$(BIN)/rocelab run demo

check: develop  ## before each commit: Python's linters, quick tests without virtual machines
	$(call lanes,2) test-quick check-lint check-rust

check-lint:
	@$(BIN)/ruff check -q .
	@$(BIN)/ruff format -q --check .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-cache --no-logo >/dev/null || $(BIN)/lint-imports --no-cache --no-logo

# Lint uses the newest Rust, tests the oldest that the core builds with.
rust_tests = cargo=$$(tools/setup/oldest-rust) && $(apart) $$cargo test -q --manifest-path tools/rocelab/Cargo.toml

# the fuzz targets' seeded mutations take six times as long as the other tests
check-rust:
	@$(rust_tests) --workspace --exclude rocelab-fuzz

# three at a time, as each sometimes waits; the tests of a file share fixtures, and mostly stay together
pytest_here = $(apart) $(BIN)/pytest -n 3 --dist worksteal $(1) tests/unit tests/golden

test-quick:
	@$(call pytest_here,-m "not slow and not long and not soak")

# What machines need is built next to the tests without them. Machines then have the processors for themselves.
test:  ## every test, including those in virtual machines, except the long ones
	$(call lanes,3) for-machines test-here
	@$(MAKE) --no-print-directory test-machines SKIP_APT=1

ci:
	$(call lanes,3) for-machines lint test-here
	@$(MAKE) --no-print-directory test-machines SKIP_APT=1

for-machines: develop others probes module-variants

test-machines:
	@$(apart) $(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder --durations=40 tests/vm

test-here: test-rust test-ebpf test-python  ## every test without virtual machines, except the long ones

test-rust: apt-develop
	@$(rust_tests)

test-ebpf: probes
	@$(call in_root,$(BUILD)/ebpf/$(LINE)) -C ebpf O=/rocelab/build check

test-python: develop prometheus tshark
	@$(call pytest_here)

coverage: develop  ## which lines of Python, Rust and C's pure parts those tests execute: build/coverage
	@$(apart) tools/setup/coverage $(BUILD)/coverage

FUZZ_SECONDS ?= 60
fuzz: apt-develop  ## libFuzzer on the readers, the decoder and the tracker (FUZZ_SECONDS for each)
	@tools/rocelab/fuzz/run $(FUZZ_SECONDS)

test-long: develop probes others  ## what `make test` leaves out, which takes minutes or chooses its inputs freely
	@$(MAKE) --no-print-directory fuzz SKIP_APT=1
	@$(BIN)/pytest -n 2 -m hypothesis --hypothesis-profile=free tests/unit
	@$(BIN)/pytest -rA -m long

# what runs on nodes of any kernel line; the rest does not depend on it
KERNEL_TESTS := $(patsubst %,tests/vm/test_%.py,lines driver_events driver_delay drop_monitors restrack own_selftests arrival forged_answers forged_requests v1 v1_netdevs fuzz_frames hostile_user \
	peers selftests rxestat rxestat_paths rxestat_places rxedump rxedump_filters rxecpu rxecpu_stacks rxetop privileges)
LINES := $(notdir $(wildcard kernel/patches/lines/*))

test-kernels: develop $(LINES:%=variants-%) $(LINES:%=probes-%) $(LINES:%=selftests-%)  ## the driver's tests on every kernel line
	@failed=; for line in $(LINES); do \
		echo "kernel line $$line" >&2; \
		ROCELAB_TEST_LINE=$$line $(BIN)/pytest -n 2 --dist loadfile $(KERNEL_TESTS) || failed="$$failed $$line"; \
	done; test -z "$$failed" || { echo "failed on:$$failed" >&2; exit 1; }

# the lines that `make test` only builds and loads, the other tshark, Prometheus and soft iWARP
others: prometheus tshark siw $(patsubst %,probes-%,$(filter-out $(LINE),$(LINES)))

# the supported Debian that this machine is not
OTHER_DEBIAN := $(if $(shell grep -s '^VERSION_CODENAME=trixie' /etc/os-release),bookworm,trixie)

prometheus: apt  ## Prometheus and promtool, for tests
	@mkdir -p $(BUILD)
	@ln -sfn "$$(tests/prometheus/unpack $(CACHE)/prometheus)" $(BUILD)/prometheus

tshark: apt  ## the tshark of the other Debian release, for tests
	@mkdir -p $(BUILD)/tshark
	@root=$$(tests/tshark/root $(OTHER_DEBIAN) $(CACHE)/tshark) && ln -sfn "$$root" $(BUILD)/tshark/$(OTHER_DEBIAN)

# (lockstep is every line's)
probes-%: apt lockstep
	@$(MAKE) --no-print-directory probes LINE=$* VARIANT=instrumented SKIP_APT=1

selftests-%: apt
	@$(MAKE) --no-print-directory selftests LINE=$* SKIP_APT=1

variants-%: apt
	@$(MAKE) --no-print-directory module-variants LINE=$* SKIP_APT=1

setup: apt .venv/installed  ## Debian packages and the virtual environment, for running

develop: setup apt-develop .venv/developing  ## the same, with what tests and linters need

apt:
	@$(if $(SKIP_APT),:,tools/setup/apt-install run)

apt-develop: apt
	@$(if $(SKIP_APT),:,tools/setup/apt-install develop install)

# every file that pip takes from a registry has a hash in one of these (`make lock` writes them)
LOCKS := tools/rocelab/locks
pip_install := $(BIN)/pip --disable-pip-version-check -q install

.venv/installed: tools/rocelab/pyproject.toml tools/rocelab/Cargo.lock tools/rocelab/Cargo.toml $(LOCKS)/run.txt $(LOCKS)/build.txt $(RUST) | apt
	@echo "set-up: Python environment in .venv, about two minutes" >&2
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@$(pip_install) --require-hashes -r $(LOCKS)/run.txt -r $(LOCKS)/build.txt
	@$(apart) PATH="$(BIN):$$PATH" $(pip_install) --no-deps --no-build-isolation -e tools/rocelab
	@touch $@

.venv/developing: $(LOCKS)/develop.txt .venv/installed | apt-develop
	@$(pip_install) --require-hashes -r $(LOCKS)/develop.txt
	@touch $@

lock: develop  ## choose the newest Python dependencies that pyproject.toml permits
	@$(BIN)/python tools/setup/lock.py

.venv/documenting: $(LOCKS)/docs.txt .venv/installed
	@$(pip_install) --require-hashes -r $(LOCKS)/docs.txt
	@touch $@

docs: setup .venv/documenting  ## a site of all pages, with search: build/site/html
	@$(BIN)/python docs/site/build.py $(BUILD)/site
	@echo "$(BUILD)/site/html/index.html"

can-enter:
	@tools/setup/can-enter

image: can-enter apt  ## the nodes' image for LINE (the default of tables/kernel_lines.csv), cached by its recipe's hash
	@mkdir -p $(BUILD)/image
	@image=$$(tools/node/build.py --line $(LINE) --cache $(CACHE)/image) && ln -sfn "$$image" $(BUILD)/image/$(LINE)

# Driver and probes are built within the image's files, with the compiler and headers of its kernel:
# no network, and only the output is writable. (Not --unshare-all: root in a chroot may have no user
# namespace, and other users get one anyway.)
in_root = tools/setup/bwrap-anywhere --ro-bind "$$(readlink -f $(BUILD)/image/$(LINE))/root" / --dev /dev --proc /proc \
	--tmpfs /tmp --ro-bind $(CURDIR) /rocelab/src $(or $(2),--bind $(1) /rocelab/build) --chdir /rocelab/src \
	--unshare-net --unshare-pid --unshare-ipc --unshare-uts --die-with-parent --clearenv --setenv PATH /usr/sbin:/usr/bin --setenv HOME /tmp --setenv LC_ALL C.UTF-8 \
	make --no-print-directory $(if $(V),V=$(V))

# a value of the image's image.json
of_image = $$(sed -n 's/.*"$(1)": "\(.*\)".*/\1/p' $(BUILD)/image/$(LINE)/image.json)

module: image  ## the instrumented rdma_rxe for LINE (VARIANT=stock, fixes, events, delay for comparisons)
	@mkdir -p $(BUILD)/kernel/$(LINE)/$(VARIANT)
	@$(call in_root,$(BUILD)/kernel/$(LINE)/$(VARIANT)) -C kernel LINE=$(LINE) VARIANT=$(VARIANT) \
		RXE_SRC=/usr/src/$(call of_image,kernel_source) O=/rocelab/build \
		KVER="$(call of_image,kernel_release)"

each-patch: image  ## does the driver build with each more patch of LINE's series, as for a bisection? (FROM=0017: from that on)
	@mkdir -p $(BUILD)/kernel/$(LINE)/each
	@$(call in_root,$(BUILD)/kernel/$(LINE)/each) -C kernel each LINE=$(LINE) FROM=$(FROM) O=/rocelab/build \
		RXE_SRC=/usr/src/$(call of_image,kernel_source) KVER="$(call of_image,kernel_release)"

# For `rocelab ab`: OUT is the folder to build in. It holds, if any, the patches that come on top
# in OUT/patches, and a tree's driver in OUT/source.
changed-module: image
	@$(call in_root,$(OUT)) -C kernel LINE=$(LINE) VARIANT=$(VARIANT) O=/rocelab/build/module \
		RXE_SRC=$(if $(wildcard $(OUT)/source),/rocelab/build/source,/usr/src/$(call of_image,kernel_source)) \
		EXTRA=$(if $(wildcard $(OUT)/patches),/rocelab/build/patches) KVER="$(call of_image,kernel_release)"

# A debug kernel of the same source, and the driver for it. The kernel stays where it was built; the
# driver is built elsewhere.
DEBUG := $(BUILD)/debug
at_debug_kernel = --ro-bind "$$(readlink -f $(DEBUG)/image/$(LINE)/kernel)" /rocelab/build --bind $(1) /mnt

debug-kernel: image
	@tools/kernel-source/debug_kernel.py --line $(LINE) --image $(BUILD)/image/$(LINE) \
		--cache $(CACHE)/kernel --out $(DEBUG)/image/$(LINE)

debug-module: debug-kernel probes
	@mkdir -p $(DEBUG)/kernel/$(LINE)/$(VARIANT)
	@ln -sfn ../ebpf $(DEBUG)/ebpf
	@ln -sfn ../drivercheck $(DEBUG)/drivercheck
	@$(call in_root,,$(call at_debug_kernel,$(DEBUG)/kernel/$(LINE)/$(VARIANT))) -C kernel LINE=$(LINE) \
		VARIANT=$(VARIANT) RXE_SRC=/usr/src/$(call of_image,kernel_source) O=/mnt KDIR=/rocelab/build/kbuild \
		KVER="$$(sed -n 's/.*"kernel_release": "\(.*\)".*/\1/p' $(DEBUG)/image/$(LINE)/image.json)"

debug-module-%:
	@$(MAKE) --no-print-directory debug-module VARIANT=$* SKIP_APT=1

module-variants: module module-stock module-delay

module-%: image
	@$(MAKE) --no-print-directory module VARIANT=$* SKIP_APT=1

probes: module mpibench perftest pingpong drivercheck lockstep  ## rxestat, rxedump, rxecpu, rxetop, and what provider veth, ab and bench need
	@mkdir -p $(BUILD)/ebpf/$(LINE)
	@$(call in_root,$(BUILD)/ebpf/$(LINE)) -C ebpf O=/rocelab/build

lockstep: apt  ## QEMU's plugin for plans with lockstep = true
	@$(MAKE) --no-print-directory -s -C tools/lockstep O=$(BUILD)/lockstep

selftests: image  ## the kernel's own tests of rxe, where LINE's source has some
	@tools/kernel-source/source.py --line $(LINE) --image $(BUILD)/image/$(LINE) --out $(BUILD)/selftests/$(LINE) \
		tools/testing/selftests/rdma tools/testing/selftests/kselftest

# (booting needs what else is on nodes)
watch-kernels: apt $(if $(findstring --boot,$(WATCH)),develop $(LINES:%=probes-%))  ## which kernels of Debian's pools, and mainline, the driver's series fits today (WATCH="--boot --write"; --build: DKMS only)
	@ROCELAB_BUILD=$(BUILD) tools/kernel-source/watch_kernels.py --cache $(CACHE)/rxe $(WATCH)

siw: image  ## soft iWARP for LINE's nodes, which Debian's kernels lack
	@mkdir -p $(BUILD)/siw/$(LINE)
	@tools/kernel-source/source.py --line $(LINE) --image $(BUILD)/image/$(LINE) \
		--out $(BUILD)/siw/$(LINE)/source drivers/infiniband/sw/siw
	@$(call in_root,$(BUILD)/siw/$(LINE)) -C kernel/siw KVER="$(call of_image,kernel_release)" \
		KSRC=/rocelab/build/source O=/rocelab/build

mpibench: image  ## MPI benchmarks for the nodes
	@mkdir -p $(BUILD)/mpibench/$(LINE)
	@$(call in_root,$(BUILD)/mpibench/$(LINE)) -C tools/mpibench O=/rocelab/build

perftest: image  ## what spares emulated nodes perftest's spins
	@mkdir -p $(BUILD)/perftest/$(LINE)
	@$(call in_root,$(BUILD)/perftest/$(LINE)) -C tools/perftest O=/rocelab/build

pingpong: image  ## the ping-pong over TCP and verbs, for the nodes
	@mkdir -p $(BUILD)/pingpong/$(LINE)
	@$(call in_root,$(BUILD)/pingpong/$(LINE)) -C tools/pingpong O=/rocelab/build

drivercheck: image  ## what `rocelab ab --check` runs on nodes
	@mkdir -p $(BUILD)/drivercheck/$(LINE)
	@$(call in_root,$(BUILD)/drivercheck/$(LINE)) -C tools/drivercheck O=/rocelab/build

bench: develop probes module-variants  ## the cost of the probes in instructions; the speed of analyzer and plugin against tshark (on an idle machine)
	@$(MAKE) --no-print-directory module VARIANT=fixes
	@$(MAKE) --no-print-directory module VARIANT=events
	@$(BIN)/python tools/rocelab/bench/probes.py
	@$(BIN)/python tools/rocelab/bench/analyze.py
	@$(BIN)/python tools/rocelab/bench/wireshark.py

# On the debug kernel, which is several times slower; leaves out what needs a distribution's kernel.
DEBUG_TESTS := $(addprefix tests/vm/test_,driver_events.py forged_answers.py forged_requests.py v1.py fuzz_frames.py hostile_user.py vlan_deleted.py soak.py)

test-debug: develop debug-module debug-module-delay  ## the driver's, fuzz and soak tests on a kernel with KASAN, lockdep and kmemleak (long)
	@ROCELAB_BUILD=$(DEBUG) ROCELAB_TEST_LINE=$(LINE) ROCELAB_TEST_PATIENCE=4 ROCELAB_SOAK_MINUTES=$(SOAK_MINUTES) \
		$(BIN)/pytest -m 'not distribution' -rA $(DEBUG_TESTS)

SOAK_MINUTES ?= 30
soak: develop probes  ## SOAK_MINUTES (30) of RoCE on a link that loses, reorders and is cut
	@ROCELAB_SOAK_MINUTES=$(SOAK_MINUTES) $(BIN)/pytest -rA -m soak tests/vm/test_soak.py

lint: develop image  ## every linter, as CI runs them
	@$(apart) tools/setup/lint

install: setup  ## rocelab for every user (PREFIX=/usr/local; ~/.local unless root; DESTDIR for packages)
	@$(if $(SKIP_APT),:,tools/setup/apt-install install)
	@DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' PYTHON='$(PYTHON)' WIRESHARK='$(WIRESHARK)' tools/setup/install

uninstall:  ## remove what install put there
	@DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' tools/setup/uninstall

clean:  ## remove what was built here, and saved machines (the image cache and runs/ stay)
	@rm -rf build .venv tools/rocelab/target $(CACHE)/snapshots $(CACHE)/packages
	@find tools -name '_core*.so' -delete
