# The way in: `make help`. Every target first makes sure of what it needs (scripts/need), so
# that a fresh clone on a fresh machine needs no other step.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Tools that cargo has to compile are kept outside the clone, and compiled once.
TOOLS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/glovebox/tools
export PATH := $(TOOLS)/bin:$(PATH)

TARGET_DIR := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
HOST := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
RELEASE := $(TARGET_DIR)/$(HOST)/release
DEBUG := $(TARGET_DIR)/$(HOST)/debug

# The packages of the four programs that are installed.
PROGRAMS := -p glovebox-cli -p glovebox-box -p glovebox-agent

# The tests' own data folder: the root tree is built into it once and kept.
# As root it lies where the ids of boxes can walk to, which a home folder may forbid.
ROOT := $(filter 0,$(shell id -u))
export GLOVEBOX_TEST_DATA := $(or $(GLOVEBOX_TEST_DATA),$(if $(ROOT),/var/cache/glovebox/test-data,$(TARGET_DIR)/test-data))

# A PostgreSQL of the tests' own, reachable over a Unix socket.
POSTGRES := $(if $(ROOT),/var/cache/glovebox/postgres,$(TARGET_DIR)/postgres)
export GLOVEBOX_TEST_POSTGRES := $(or $(GLOVEBOX_TEST_POSTGRES),$(POSTGRES)/socket)

.PHONY: help
help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

.PHONY: build
build: ## Build every program, for tests and by hand
	@scripts/need build
	cargo build --locked --workspace --bins
	scripts/template-library "$(DEBUG)"

.PHONY: run
run: ## Build, set up, and run the example; the results are in results/
	@scripts/need build
	cargo build --release --locked $(PROGRAMS)
	scripts/template-library "$(RELEASE)" --release
	@scripts/need run "$(RELEASE)/glovebox"
	"$(RELEASE)/glovebox" setup
	"$(RELEASE)/glovebox" run examples/penguins/report.py examples/penguins/penguins.csv --out results/
	@echo
	@echo "The results are in $(CURDIR)/results:"
	@ls -1 results

.PHONY: test
test: test-build ## Run every test at the size for each change
	cargo nextest run --locked --workspace
	@scripts/python-tests "$(GLOVEBOX_TEST_DATA)"

.PHONY: soak
soak: test-build ## Run every test at its full counts; takes hours
	GLOVEBOX_SOAK=1 cargo nextest run --locked --workspace --profile soak
	@GLOVEBOX_KERNEL_CALLS=10000 scripts/python-tests "$(GLOVEBOX_TEST_DATA)"

.PHONY: test-vm
test-vm: test-build ## Run what depends on control groups in a virtual machine that has version 2 only
	@scripts/need vm
	scripts/vm "$(DEBUG)" "$(GLOVEBOX_TEST_DATA)"

# Programs first, then the tree that boxes stand on, once: tests that start boxes find both.
.PHONY: test-build
test-build:
	@scripts/need build
	@scripts/need nextest
	cargo build --locked --workspace --all-targets
	scripts/template-library "$(DEBUG)"
	@scripts/need test "$(DEBUG)/glovebox"
	"$(DEBUG)/glovebox" setup --data "$(GLOVEBOX_TEST_DATA)"
	scripts/postgres "$(POSTGRES)"
	@scripts/need engine
	GLOVEBOX_IMAGE_OFFICE=0 scripts/image sandbox "$(DEBUG)"
	scripts/image gateway "$(DEBUG)"

.PHONY: openapi
openapi: ## Write docs/reference/openapi.json anew from the code
	@scripts/need build
	GLOVEBOX_WRITE_OPENAPI=1 cargo test --locked -p glovebox-server --test openapi

.PHONY: images
images: ## Build the images of sandboxes and of the gateway on this machine's Docker engine
	@scripts/need build
	@scripts/need engine
	cargo build --release --locked $(PROGRAMS) -p glovebox-gateway
	scripts/image sandbox "$(RELEASE)"
	scripts/image gateway "$(RELEASE)"

.PHONY: check
check: check-format check-lints check-repository check-docs check-python check-dependencies ## Everything that needs no sandbox: format, lints, arrows, links, licences

.PHONY: check-format
check-format:
	cargo fmt --all --check

.PHONY: check-lints
check-lints:
	@scripts/need build
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo clippy --locked -p glovebox-box --lib --features template-library -- -D warnings

# Crate arrows, homes of `unsafe`, file sizes, paths and links in documents, words that do not belong.
.PHONY: check-repository
check-repository:
	@scripts/need nextest
	cargo nextest run --locked -p glovebox-testkit --test repository --success-output final

.PHONY: check-docs
check-docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps

.PHONY: check-python
check-python:
	@scripts/need ruff
	"$(TOOLS)/python/bin/ruff" check --no-cache .
	for script in .ci/run scripts/*; do bash -n "$$script"; done

# The advisory check of cargo-deny fetches its database and so is not part of this: whoever has
# a way out runs `cargo deny check advisories`.
.PHONY: check-dependencies
check-dependencies:
	@scripts/need deny
	cargo fetch --quiet --locked
	cargo deny --offline --locked check bans licenses sources

.PHONY: bench
bench: ## Measure; BENCH=short for the quick form. Figures go to target/bench.jsonl
	@scripts/need build
	cargo build --release --locked --workspace --bins
	scripts/template-library "$(RELEASE)" --release
	@scripts/need bench "$(RELEASE)/glovebox"
	bench/run $(BENCH)
