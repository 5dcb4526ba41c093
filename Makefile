# What a person types. Longer than a few lines lives in tests/scripts.

# RELEASE=1 builds the demo optimised: a few minutes longer the first time.
PROFILE := $(if $(RELEASE),release,dev)
BUILT := $(or $(CARGO_TARGET_DIR),target)/$(if $(RELEASE),release,debug)

.DEFAULT_GOAL := help
.PHONY: help demo test fix advisories bench bench-delivery crash disk expiry faults fuzz-calls lesser mutants neighbours parking random slow timers fuzz

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

demo: ## build the server and watch an agent being walked through a deploy gate
	@sh tests/scripts/need.sh rust cc
	@echo "building switchward: some minutes the first time, seconds after that"
	cargo build --locked --profile $(PROFILE) --bin switchward
	@$(BUILT)/switchward demo

test: ## format, lints, repository checks and every test; gets what is missing
	@sh tests/scripts/test.sh

crash: ## 200 kills and 20 power cuts under load, and limits kept through them: many minutes
	@sh tests/scripts/crash.sh

disk: ## a disk is filled to its last byte under load, ten times: nothing acknowledged is lost, decisions go on, writes come back
	@sh tests/scripts/need.sh rust cc
	CRASH_FULL=$(or $(CRASH_FULL),10) cargo nextest run --locked -p switchward --test crash --no-capture full_disk

fuzz: ## libFuzzer on each way in for ten minutes (FUZZ_SECONDS, FUZZ_TARGETS); needs a nightly compiler
	@sh tests/scripts/fuzz.sh

fuzz-calls: ## 72,000 random calls by keys of all roles, a reply token and nobody, optimised: no fault, none slower than a second: many minutes
	@sh tests/scripts/need.sh rust cc
	FUZZ_CALLS=$(or $(FUZZ_CALLS),72000) FUZZ_ANSWER_MS=1000 cargo test --locked --release -p switchward-gateway --test api random_calls -- --nocapture

faults: ## ten minutes of kills of the server and its Redis under effects that fail three times in ten: none may be lost
	@sh tests/scripts/faults.sh

mutants: ## change the engine in small ways and see that the scenarios alone notice: many minutes
	@sh tests/scripts/mutants.sh

lesser: ## 10,000 random runs by an agent's and by a worker's key, optimised: no control that holds them gets weaker: many minutes
	@sh tests/scripts/need.sh rust cc
	LESSER_RUNS=$(or $(LESSER_RUNS),10000) LESSER_EACH=100 cargo test --locked --release -p switchward-gateway --test api lesser -- --nocapture

random: ## five million steps of random conversation workflows, optimised; the test has a hundred thousand: many minutes
	@sh tests/scripts/need.sh rust cc
	RANDOM_STEPS=$(or $(RANDOM_STEPS),5000000) cargo test --locked --release -p switchward-scenario --test random -- --nocapture

slow: ## every test on a slow machine: three times beside four busy loops, once with every sync 20 ms slower: many minutes
	@sh tests/scripts/slow.sh

fix: ## format, and let clippy mend what it can
	cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged
	cargo fmt --all

advisories: ## get RustSec's advisories, or those of ADVISORY_DB, look at every library, and record it
	@sh tests/scripts/need.sh rust git python
	@sh tests/scripts/supply.sh advisories

bench: ## measure the release server beside a bare echo and a bare disk sync
	cargo build --locked --release --bin switchward --bin switchward-bench
	$(or $(CARGO_TARGET_DIR),target)/release/switchward-bench

parking: ## park 200,000 sessions: what each costs in memory and on disk, and how soon all are there after a kill
	cargo build --locked --release --bin switchward --bin switchward-bench
	$(or $(CARGO_TARGET_DIR),target)/release/switchward-bench --parking 200000

timers: ## 1,000,000 pending timers: what each costs, how late and fast others are, and that no jump of a clock fires one early: many minutes
	cargo build --locked --release --bin switchward --bin switchward-bench
	$(or $(CARGO_TARGET_DIR),target)/release/switchward-bench --timers $(or $(TIMERS),1000000)

expiry: ## 200,000 ended sessions expire: what 64 callers notice of it, and what the disk gets back: many minutes
	cargo build --locked --release --bin switchward --bin switchward-bench
	$(or $(CARGO_TARGET_DIR),target)/release/switchward-bench --expiry $(or $(EXPIRY),200000)

neighbours: ## one tenant floods the server in six ways: what another one notices of it, and that silent connections keep nobody out
	cargo build --locked --release --bin switchward --bin switchward-bench
	$(or $(CARGO_TARGET_DIR),target)/release/switchward-bench --neighbours

bench-delivery: ## effects through Redis to a sink beside bare commands of Redis, and a decision's way to its arrival
	@sh tests/scripts/need.sh rust cc redis
	cargo build --locked --release --bin switchward --bin switchward-bench
	$(or $(CARGO_TARGET_DIR),target)/release/switchward-bench --delivery
