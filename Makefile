# Commands for developers. Scripts of more than a few lines are in tests/scripts.

# RELEASE=1 builds the demo optimised: the first build takes a few minutes longer.
PROFILE := $(if $(RELEASE),release,dev)
TARGET := $(or $(CARGO_TARGET_DIR),target)
BUILT := $(TARGET)/$(if $(RELEASE),release,debug)
# PGO=1 measures the program of `make release`, as it is there, instead of one that cargo alone builds.
SHIPPED := $(if $(PGO),$(TARGET)/release-pgo/switchward)
MEASURED := $(if $(PGO),--bin switchward-bench,--bin switchward --bin switchward-bench)
SERVER := $(if $(PGO),--server $(SHIPPED))

.DEFAULT_GOAL := help
.PHONY: help demo release test fix advisories api-cluster bench bench-cluster bench-delivery cluster-faults crash disk expiry faults fuzz-calls leader-kills lesser mutants neighbours order parking planted random roll sim slow timers fuzz

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

demo: ## build the server and watch an agent pass a deploy gate
	@sh tests/scripts/need.sh rust cc
	@echo "building switchward: the first build takes some minutes, later ones take seconds"
	cargo build --locked --profile $(PROFILE) --bin switchward
	@$(BUILT)/switchward demo

release: ## build the server to be shipped, optimised by a profile that it records first (many minutes)
	@sh tests/scripts/release.sh

$(TARGET)/release-pgo/switchward:
	@sh tests/scripts/release.sh

test: ## check format and lints, run the repository checks and every test; installs missing tools
	@sh tests/scripts/test.sh

crash: ## run 200 kills and 20 power cuts under load, and check the limits (many minutes)
	@sh tests/scripts/crash.sh

disk: ## fill a disk to its last byte under load, ten times; check that no acknowledged write is lost
	@sh tests/scripts/need.sh rust cc
	CRASH_FULL=$(or $(CRASH_FULL),10) cargo nextest run --locked -p switchward --test crash --no-capture full_disk

fuzz: ## run libFuzzer on each target for ten minutes (FUZZ_SECONDS, FUZZ_TARGETS); needs a nightly compiler
	@sh tests/scripts/fuzz.sh

fuzz-calls: ## make 72,000 random calls with keys of all roles, a reply token and no key (many minutes)
	@sh tests/scripts/need.sh rust cc
	FUZZ_CALLS=$(or $(FUZZ_CALLS),72000) FUZZ_ANSWER_MS=1000 cargo test --locked --profile long -p switchward-gateway --test api random_calls -- --nocapture

faults: ## kill the server and its Redis for ten minutes while effects fail; check that no effect is lost
	@sh tests/scripts/faults.sh

cluster-faults: ## kill, pause, cut off and stall the servers of a cluster for an hour (CLUSTER_FAULT_SECONDS, CLUSTER_FAULT_SEEDS, CLUSTER_FAULT_COUNTS, CLUSTER_FAULT_WITHOUT_POWER_CUTS=1)
	@sh tests/scripts/need.sh rust cc redis
	CLUSTER_FAULT_SECONDS=$(or $(CLUSTER_FAULT_SECONDS),3600) CLUSTER_FAULT_WITHOUT_POWER_CUTS=$(or $(CLUSTER_FAULT_WITHOUT_POWER_CUTS),0) sh tests/scripts/seeds.sh CLUSTER_FAULT 0..1000000 cargo test --locked -p switchward --test it -- --nocapture a_cluster_keeps_its_promises_under_faults

leader-kills: ## kill the leader of a shard 30 times while mails and webhooks go out (LEADER_KILLS); check that no effect is lost and no mail goes out twice
	@sh tests/scripts/need.sh rust cc redis
	LEADER_KILLS=$(or $(LEADER_KILLS),30) cargo test --locked -p switchward --test it -- --nocapture leaders_that_are_killed

api-cluster: ## run every test of the API against three servers, each call at a random one, and through a gateway (many minutes)
	@sh tests/scripts/api-cluster.sh

mutants: ## change the engine in small ways and check that the scenarios notice (many minutes)
	@sh tests/scripts/mutants.sh

lesser: ## make 10,000 random runs with keys of agents and workers; check that they cannot weaken a control (many minutes)
	@sh tests/scripts/need.sh rust cc
	LESSER_RUNS=$(or $(LESSER_RUNS),10000) LESSER_EACH=100 cargo test --locked --profile long -p switchward-gateway --test api lesser -- --nocapture

random: ## run five million steps of random conversation workflows; make test runs 280,000 (many minutes)
	@sh tests/scripts/need.sh rust cc
	RANDOM_STEPS=$(or $(RANDOM_STEPS),5000000) cargo test --locked --profile long -p switchward-scenario --test random -- --nocapture

order: ## simulate the engine under reordered, repeated and lost messages, by 100,000 seeds (ORDER_SEEDS, ORDER_COUNTS; many minutes)
	@sh tests/scripts/need.sh rust cc
	sh tests/scripts/seeds.sh ORDER 0..100000 cargo test --locked --profile long -p switchward-engine --test order -- --nocapture seeds::

roll: ## replace the servers of a cluster one by one by those of the next feature level under load, and back (ROLL_FROM; many minutes)
	@PROFILE=$(PROFILE) sh tests/scripts/roll.sh

sim: ## simulate three and five servers under faults, by 1,000 seeds (SIM_SEEDS, SIM_COUNTS); print what failed how often (many minutes)
	@sh tests/scripts/need.sh rust cc
	sh tests/scripts/seeds.sh SIM 0..1000 cargo test --locked --profile long -p switchward-shard --test sim -- --nocapture servers_keep

planted: ## plant bugs in the engine and in the servers, one at a time, and check that the simulations find each of them (many minutes)
	@sh tests/scripts/need.sh rust cc
	ORDER_SEEDS=$(or $(ORDER_SEEDS),0..200) cargo test --locked --profile long -p switchward-engine --test order -- --nocapture planted
	SIM_SEEDS=$(or $(SIM_SEEDS),0..200) cargo test --locked --profile long -p switchward-shard --test sim -- --nocapture planted

slow: ## run every test beside four busy loops (three times), and with each sync 20 ms slower (many minutes)
	@sh tests/scripts/slow.sh

fix: ## format the code, and let clippy fix what it can
	cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged
	cargo fmt --all

advisories: ## check every library against RustSec's advisories (or ADVISORY_DB), and record the result
	@sh tests/scripts/need.sh rust git python
	@sh tests/scripts/supply.sh advisories

bench: $(SHIPPED) ## compare the release server with a bare echo server and a bare disk sync, or with another build (ARGS, PGO=1)
	cargo build --locked --release $(MEASURED)
	$(TARGET)/release/switchward-bench $(SERVER) $(ARGS)

parking: ## park 200,000 sessions; measure their memory and disk space, and the restart after a kill
	cargo build --locked --release --bin switchward --bin switchward-bench
	$(TARGET)/release/switchward-bench --parking 200000

timers: ## create 1,000,000 timers; measure their cost and delay, and check that none fires early (many minutes)
	cargo build --locked --release --bin switchward --bin switchward-bench
	$(TARGET)/release/switchward-bench --timers $(or $(TIMERS),1000000)

expiry: ## let 200,000 ended sessions expire; measure the effect on 64 callers and the freed disk space (many minutes)
	cargo build --locked --release --bin switchward --bin switchward-bench
	$(TARGET)/release/switchward-bench --expiry $(or $(EXPIRY),200000)

neighbours: ## flood the server from one tenant in six ways; measure the effect on another tenant
	cargo build --locked --release --bin switchward --bin switchward-bench
	$(TARGET)/release/switchward-bench --neighbours

bench-cluster: $(SHIPPED) ## measure three servers beside a bare log and etcd, through kills, hand-overs and growth (ARGS, PGO=1; 40 minutes)
	@sh tests/scripts/need.sh rust cc
	@sh tests/scripts/need.sh etcd || echo "nothing is compared with etcd"
	cargo build --locked --release $(MEASURED)
	$(TARGET)/release/switchward-bench $(SERVER) --cluster $(ARGS)

bench-delivery: ## measure effects through Redis to a receiver, and compare them with bare Redis commands
	@sh tests/scripts/need.sh rust cc redis
	cargo build --locked --release --bin switchward --bin switchward-bench
	$(TARGET)/release/switchward-bench --delivery
