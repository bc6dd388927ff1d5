# What can be done here: `make help`. Only Go and make are needed, except where a target says otherwise.

GO       ?= go
BIN      := bin

# Tools are built once for each version and kept outside of the clone.
TOOLS         := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/oclocks-tools
GOLANGCI      := $(TOOLS)/golangci-lint-v2.15.0/golangci-lint
# v1.9.0 needs a version of golang.org/x/telemetry that the Go module proxy did not serve when this was written.
GOVULNCHECK   := $(TOOLS)/govulncheck-v1.8.0/govulncheck
BENCHSTAT     := $(TOOLS)/benchstat-v0.0.0-20260908200009-22c9c6c9d4da/benchstat

TESTFLAGS ?=
FUZZTIME  ?= 10s
ARGS      ?=

# Of make chaos and make jepsen. LEDGER=docs/chaos-ledger.jsonl keeps the figures.
CHAOSLEDGER = $(if $(LEDGER),-ledger '$(LEDGER)' -commit "$$(git rev-parse --short HEAD 2>/dev/null)")

# Of make mutants.
MUTANTS =
SEEDS   = 2000
JOBS    = 2
PAGE    = $(if $(MUTANTS),,docs/mutants.md)

# Of make bench-peers.
ROUNDS    = 3
FIGURES   = docs/performance.json
SECTIONS  =
PAGEPARTS = table,held,cluster,floor,failover,idle,keepalive,memory,zones,nodes,garbage
BENCHPAGE = $(if $(findstring command,$(origin PAGE)),$(PAGE),docs/performance.md)

# Of make cluster, not taken from the environment; empty: what oclocks-startup local takes, which is the nodes that DIR has.
NODES =
DIR   = $(BIN)/cluster
PORT  =

.DEFAULT_GOAL := help
.PHONY: help build try run cluster test race cover fuzz sim chaos jepsen mutants lint vuln bench bench-peers bench-page bench-build microbench tools model clean

help: ## list what can be done
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build all commands into bin/
	@mkdir -p $(BIN)
	$(GO) build -o $(BIN)/ ./cmd/...

try: build ## start a broker, watch a lock being taken, waited for and released, stop
	@PATH="$(CURDIR)/$(BIN):$$PATH" ./internal/try/try.sh

run: build ## start the daemon in the foreground (ARGS='--listen …')
	$(BIN)/oclocks-daemon $(ARGS)

cluster: build ## run a cluster on this machine until Ctrl-C (NODES=3 DIR=bin/cluster PORT=4221, the port before the first)
	@$(BIN)/oclocks-startup local --dir '$(DIR)' $(if $(NODES),--nodes $(NODES)) $(if $(PORT),--port $(PORT)) $(ARGS)

test: ## run all tests (TESTFLAGS='-race -count=3')
	$(GO) test $(TESTFLAGS) ./...

race: ## run all tests with the race detector, shuffled (needs a C compiler)
	$(GO) test -race -shuffle=on $(TESTFLAGS) ./...

cover: ## run all tests and print how much of each function they reach
	@mkdir -p $(BIN)
	$(GO) test -coverpkg=./... -coverprofile=$(BIN)/cover.out ./...
	$(GO) tool cover -func=$(BIN)/cover.out

fuzz: ## run each fuzz test for FUZZTIME (10s)
	@set -e; list=$$(mktemp); trap 'rm -f "$$list"' EXIT; \
	grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sort > "$$list"; \
	while IFS=: read -r file name; do \
		name=$${name#func }; dir=$${file%/*}; \
		echo "== $$dir $$name"; \
		out=$$($(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) $$dir 2>&1) && status=0 || status=$$?; \
		echo "$$out"; \
		case "$$status $$out" in \
		0\ *) ;; \
		*"Failing input"* | *"hung or terminated"* | *panic:*) exit 1 ;; \
		*"context deadline exceeded"*) echo "fuzz: the time was over while an input was tried; nothing was found (go.dev/issue/75804)" ;; \
		*) exit 1 ;; \
		esac; \
	done < "$$list"

# A first seed that nobody has run before is drawn from the clock. JOBS= all cores. LEDGER=docs/sim-ledger.jsonl keeps the figures.
sim: ## run simulated clusters for TIME=1m (START=seed, SEEDS=n, JOBS=n, LEDGER=file); exit status 1 if a promise is broken
	$(GO) run ./internal/sim/simulate $(if $(TIME),-time='$(TIME)') $(if $(START),-start='$(START)') $(if $(findstring command,$(origin SEEDS)),-seeds='$(SEEDS)') \
		$(if $(findstring command,$(origin JOBS)),-jobs='$(JOBS)') $(if $(LEDGER),-ledger='$(LEDGER)' -commit="$$(git rev-parse --short HEAD 2>/dev/null)")

# A cluster of processes in network namespaces, so it needs root on Linux, and says so where it cannot. CHAOSDIR keeps what a broken run leaves.
chaos: build ## do the worst to real daemons for TIME=10m (SEED=n, SCHEDULE=file of a run to repeat, PACE=2 half as fast, LEDGER=file, CHAOSDIR=dir)
	$(GO) build -o $(BIN)/chaos ./internal/chaos/cmd
	$(BIN)/chaos -bin $(BIN) -time '$(or $(TIME),10m)' $(if $(SEED),-seed '$(SEED)') $(if $(SCHEDULE),-schedule '$(SCHEDULE)') \
		$(if $(PACE),-pace '$(PACE)') $(if $(CHAOSDIR),-dir '$(CHAOSDIR)') $(CHAOSLEDGER)

jepsen: build ## Jepsen's lock test of etcd 3.4.3, with and without fencing, for TIME=2m (LEDGER=file)
	$(GO) build -o $(BIN)/chaos ./internal/chaos/cmd
	$(BIN)/chaos -jepsen -bin $(BIN) -time '$(or $(TIME),2m)' $(CHAOSLEDGER)

# With MUTANTS the page is left alone unless PAGE says otherwise, so that a quick look changes nothing.
mutants: ## have the simulator find each planted bug, and write docs/mutants.md (MUTANTS=name,... SEEDS=2000 JOBS=2)
	$(GO) run -tags mutants ./internal/mutant/hunt -mutants='$(MUTANTS)' -seeds=$(SEEDS) -jobs=$(JOBS) -page='$(PAGE)' -commit=$$(git rev-parse --short HEAD)

lint: $(GOLANGCI) ## run go vet and golangci-lint (builds the linter the first time, about 2 minutes)
	$(GO) vet ./...
	$(GOLANGCI) run ./...
	cd bench && $(GO) vet ./... && $(GOLANGCI) run --config ../.golangci.yml ./...

# The data base is at vuln.go.dev. Without it nothing is known: that is told, and fails only with VULN_REQUIRED=1.
vuln: $(GOVULNCHECK) ## look for known vulnerabilities in what we import (VULN_REQUIRED=1: fail if nothing can be known)
	@out=$$($(GOVULNCHECK) ./... 2>&1) && status=0 || status=$$?; \
	echo "$$out"; \
	case "$$out" in \
	*"fetching vulnerabilities"*) \
		echo "vuln: NOT CHECKED: the data base vuln.go.dev cannot be reached from this machine"; \
		if [ "$(VULN_REQUIRED)" = 1 ]; then exit 1; fi ;; \
	*) exit $$status ;; \
	esac

bench: ## print the short benchmarks, only us and raw NATS, in about 3 minutes (BENCH_10M=1 with 10 million locks, ARGS='--only all' the long ones too)
	cd bench && $(GO) run . $(ARGS)

# Of make microbench: empty is the default of the script.
COUNT =
REV   =
BENCH =

# What is measured is the time of pure code, so nothing else should run on the machine.
microbench: $(BENCHSTAT) ## run the micro-benchmarks of the pure rooms (COUNT=10 REV=commit to compare with BENCH=regexp TIME=1s)
	@COUNT='$(COUNT)' REV='$(REV)' BENCH='$(BENCH)' TIME='$(TIME)' ./internal/microbench/run.sh '$(BENCHSTAT)'

# FIGURES is what was measured, PAGE is made of it. PAGE= leaves the page alone. What is not there is skipped, with the command that installs it.
# All of it takes over an hour. In pieces, each of which leaves the figures of the others alone: ARGS='--peers redis' (with --rounds 1
# --append for one round more), SECTIONS=idle,zones.
bench-peers: ## measure us and others next to raw NATS, over an hour, and write PAGE=docs/performance.md (a piece of it: ARGS='--peers redis' or SECTIONS=idle)
	$(if $(and $(SECTIONS),$(if $(ARGS),,no)),,cd bench/peers && $(GO) run . --rounds '$(ROUNDS)' --into '$(abspath $(FIGURES))' $(ARGS))
	$(if $(and $(ARGS),$(if $(SECTIONS),,no)),,cd bench && BENCH_10M=$${BENCH_10M-1} $(GO) run . --only '$(or $(SECTIONS),$(PAGEPARTS))' --into '$(abspath $(FIGURES))')
	$(if $(BENCHPAGE),cd bench && $(GO) run ./page --figures '$(abspath $(FIGURES))' --page '$(abspath $(BENCHPAGE))')

bench-page: ## write docs/performance.md and its plots anew from docs/performance.json
	cd bench && $(GO) run ./page

bench-build: ## check that the benchmarks build (bench/peers, which needs the clients of others, only with PEERS=1)
	cd bench && $(GO) vet ./... && $(GO) build -o /dev/null ./...
	$(if $(PEERS),cd bench/peers && $(GO) vet ./... && $(GO) build -o /dev/null ./...)

tools: $(GOLANGCI) $(GOVULNCHECK) $(BENCHSTAT) ## build the pinned tools

# A download may fail once.
tool = for pause in 5 30 0; do echo "$(GO) install $(1)"; GOBIN=$(@D) $(GO) install $(1) && break; sleep $$pause; done; test -x $@

$(GOLANGCI):
	@$(call tool,github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0)

$(GOVULNCHECK):
	@$(call tool,golang.org/x/vuln/cmd/govulncheck@v1.8.0)

$(BENCHSTAT):
	@$(call tool,golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da)

model: ## check the models of docs/model with Spin (LIMIT=180 seconds and MEM=3072 MiB for each check)
	docs/model/run.sh

clean: ## remove what was built here
	rm -rf $(BIN) bench/bin
