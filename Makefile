# Bare `make` lists the targets. On a bare Debian machine run it as root: it installs missing
# packages from Debian and from the Go module proxy.

SHELL := /bin/bash
GOBIN := $(CURDIR)/bin
GOLANGCI := v2.15.0
# What was built for another checkout need not be built again.
export GOFLAGS += -trimpath
BUILD_PACKAGES := gcc make libc6-dev coinor-libclp-dev
PACKAGES := $(BUILD_PACKAGES) mmdebstrap debian-archive-keyring postgresql postgresql-client munge nginx-light prometheus python3 lintian
PYTHON_PACKAGES := openssl python3 python3-build python3-setuptools python3-torch python3-venv python3-wheel mypy
# Debian's own, which has these packages.
PYTHON ?= /usr/bin/python3
FUZZTIME ?= 20s
DRAWS ?= 1000
# The folder with the real traces that tests read; they are not ours to ship.
TRACES ?= $(or $(FAIRLEASE_TRACES),$(wildcard ../shared/traces))
# Tests on a real Slurm wait for it, by the clock: they run after what keeps the cores busy. Those of the whole, which
# measure what tenants get in real time, run alone: sixteen clusters with their loops keep about one core busy.
LIVE := ./tests/install ./sidecar/slurm ./tests/chaos ./tests/cluster
WHOLE := ./tests/e2e
# Tests of these packages need COIN-OR CLP. Of the others, `make check` tests a build without cgo: Go links it faster.
SOLVED := ./research/... ./sidecar/cmd/... ./sidecar/config ./sidecar/daemon ./sidecar/engine ./sidecar/engine/answer \
	./sidecar/engine/policy/... ./sidecar/engine/preset ./sidecar/sim/baseline ./sidecar/sim/experiment ./tests/decisions ./tests/scenarios
# Tests are linked without what only debuggers read: that takes half the time.
GOTEST := go test -ldflags=-w
FULL := FAIRLEASE_FULL=1 FAIRLEASE_TRACES=$(abspath $(TRACES)) $(GOTEST) -count 1 -timeout 60m -parallel 8
# Tests that draw random instances match this.
DRAWN := (rapid[.]Check|seeds[.]Of)[(]

.DEFAULT_GOAL := help
.PHONY: help deps browser-deps build-deps build check check-nocgo python-check test lint npm uplot packages packages-check demo demo-first bench bench-live results chaos gain playground site fuzz soak soak-live plugin-check clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# $(call installed,PACKAGES) installs the Debian packages of them that are missing.
define installed
@missing=$$(dpkg-query -W -f '$${db:Status-Abbrev} $${Package}\n' $(1) 2>&1 | awk '!/^ii/{print $$NF}'); \
[ -z "$$missing" ] && exit 0; \
[ "$$(id -u)" = 0 ] || { echo "make: some of these Debian packages are missing: $(1); install them or run make as root" >&2; exit 1; }; \
echo "installing Debian packages: $(1)"; \
apt-get update -q >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $(1) >/dev/null
endef

deps: ## install what tests and the demo need (Debian packages; needs root)
	$(call installed,$(PACKAGES))

browser-deps: tests/browser/node_modules ## install what looks at the web page: Chromium, node, and npm packages (needs root)
	$(call installed,chromium)

tests/browser/node_modules: tests/browser/package-lock.json
	@command -v npm >/dev/null || $(MAKE) -s npm
	cd tests/browser && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

npm: # a node from elsewhere than Debian brings its own npm, and excludes Debian's
	$(call installed,nodejs npm)

build-deps: ## install what building needs: a C compiler and COIN-OR CLP (Debian packages; root where they are missing)
	$(call installed,$(BUILD_PACKAGES))

build: build-deps ## build bin/fairlease
	go build -o $(GOBIN)/ ./sidecar/cmd/fairlease

check: build-deps plugin-check check-nocgo ## what needs no root: vet, unit tests, stories; properties with 4 draws instead of 100, few cases of slow tables (about three minutes)
	go vet ./...
	failed=; export FAIRLEASE_NO_CLUSTER=1; \
	CGO_ENABLED=0 $(GOTEST) -p 4 $$(go list ./... | grep -vxF "$$(go list $(SOLVED) $(WHOLE))") || failed=1; \
	$(GOTEST) -p 4 $(SOLVED) || failed=1; \
	[ -z "$$failed" ]

check-nocgo: ## build without cgo, and for a browser, and test what is different there: no COIN-OR CLP, no kernel in C
	CGO_ENABLED=0 go vet ./...
	CGO_ENABLED=0 $(GOTEST) ./sidecar/engine/policy/... ./sidecar/engine/preset
	CGO_ENABLED=0 $(GOTEST) -run 'CLP|Solver' ./sidecar/config ./sidecar/cmd/fairlease
	CGO_ENABLED=0 GOOS=js GOARCH=wasm go vet ./sidecar/cmd/fairlease-playground

python-check: ## types, tests, wheel and sdist of the job-side library, into out/python (Debian packages; root where they are missing)
	$(call installed,$(PYTHON_PACKAGES))
	rm -rf out/python && mkdir -p out/python && cp -r contrib/python out/python/source && rm out/python/source/*.go
	cd out/python/source && $(PYTHON) -m mypy && $(PYTHON) -m unittest discover -s tests && $(PYTHON) -m build --no-isolation -o .. . >build.log 2>&1 || { cat build.log; exit 1; }
	cd out/python && PYTHONPATH=$$(ls $$PWD/*.whl) $(PYTHON) -c 'import fairlease; assert ".whl" in fairlease.__file__'

test: deps browser-deps plugin-check check-nocgo python-check ## everything, the tests on two real Slurms too (root, three quarters of an hour)
	go vet ./...
	$(if $(TRACES),,@echo "tests on real traces are skipped: there is no ../shared/traces; name a folder with TRACES=DIR")
	@echo "tests/e2e tries the presets of day $$(date -u +%-j) of the year alone, unless FAIRLEASE_PRESETS=all: see CONTRIBUTING.md"
	failed=; \
	$(FULL) $$(go list ./... | grep -vxF "$$(go list $(LIVE) $(WHOLE))") || failed=1; \
	$(FULL) $(LIVE) || failed=1; \
	$(FULL) -parallel 16 $(WHOLE) || failed=1; \
	[ -z "$$failed" ]

lint: build-deps ## golangci-lint, as in CI
	@[ -x $(GOBIN)/golangci-lint ] || GOBIN=$(GOBIN) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI)
	$(GOBIN)/golangci-lint run ./...

uplot: tests/browser/node_modules ## copy the chart library from its npm package into third_party, after a change of tests/browser/package-lock.json (npm)
	cp tests/browser/node_modules/uplot/LICENSE tests/browser/node_modules/uplot/dist/uPlot.{iife.min.js,min.css} third_party/uplot/
	cd third_party/uplot && sha256sum LICENSE uPlot.iife.min.js uPlot.min.css >SHA256SUMS

plugin-check: ## unit tests of the submit plugin's Slurm-free part
	@$(MAKE) -s -C slurmplugin check

packages: build-deps ## dist/*.deb and dist/*.rpm, with checksums and the list of all parts (SBOM)
	packaging/build

packages-check: deps ## build the packages twice, check them, and install them in clean trees of two Debian releases (root, minutes)
	$(call installed,rpm mandoc)
	packaging/check

demo: demo-first deps build ## a real Slurm, two tenants, a few minutes of leases to look at, in a browser too; STAY=1 leaves it running (root)
	go run ./tests/demo $(if $(STAY),-stay)

demo-first:
	@echo "demo: packages are installed and fairlease is compiled first, both only where needed. That takes some silent minutes the first time."

bench: build-deps ## benchmarks that need no root, some on the traces in TRACES; one line a figure; says what got slower since the run in docs/figures.md (BENCH="-record": records this one there; "-decisions": what must stay fast, minutes; "-older": this and two simulations beside older commits; "-years": a million jobs)
	FAIRLEASE_TRACES=$(abspath $(TRACES)) go run ./tests/bench $(BENCH)

results: build-deps ## tables and pictures of docs/results.md and research/results.md that are simulations of the traces in TRACES (hours; TABLE="order idle": some; WORKERS: runs at once); what is done is kept in out/results
	FAIRLEASE_TRACES=$(if $(TRACES),$(abspath $(TRACES))) go run ./tests/results -workers $(or $(WORKERS),1) -tables "$(TABLE)"

bench-live: deps browser-deps ## benchmarks on a real Slurm and a real PostgreSQL (root, an hour); ends with one line a figure
	go run ./tests/bench -live
	go run ./tests/bench -slices
	go run ./tests/bench -journal 6
	go run ./tests/bench -page
	go run ./tests/bench -web
	go run ./tests/gain -worst docs/faults.md -day

chaos: deps ## a real Slurm on which everything fails, for MINUTES (10), by a SEED (fresh), then RACES (1000) starts of jobs against grants on both real Slurms, and odd submissions for POISON (10m); prints what it did, and what was lost (root)
	failed=; \
	go run ./tests/chaos -minutes $${MINUTES:-10} -seed $${SEED:-0} || failed=1; \
	FAIRLEASE_RACES=$${RACES:-1000} go test -count 1 -timeout 2h -v -run '^TestLive$$//^races$$' ./sidecar/slurm || failed=1; \
	FAIRLEASE_POISON=$${POISON:-10m} FAIRLEASE_SEED=$${SEED:-$$RANDOM} go test -count 1 -timeout 2h -v -run '^TestPoison$$' ./tests/e2e || failed=1; \
	[ -z "$$failed" ]

soak-live: deps ## a real Slurm on which nothing fails, under a week of load within MINUTES (120) or HOURS; fails if the daemon's memory, descriptors or journal grow, its books drift from slurmdbd's, or a GPU is lost (root)
	go run ./tests/chaos -soak -minutes $${MINUTES:-$$((60 * $${HOURS:-2}))} -seed $${SEED:-0}

gain: deps ## one user plays some 70 strategies against an honest one, on both real Slurms with both gates, and writes each one's gain into docs/faults.md; GAIN="-only tiny": options (root, four hours)
	go run ./tests/gain -out docs/faults.md $(GAIN)

playground: ## the simulator as a page, into out/playground, which any server of static files can offer; prints its size (needs Go only)
	go run ./sidecar/cmd/fairlease-playground

site: ## the documentation as one site with search, into out/site; it needs no server (needs Go only)
	go run ./tests/site/cmd/site

fuzz: build-deps ## fuzz every decoder for FUZZTIME each
	@for pkg in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
	  for f in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$pkg/*_test.go | cut -c6-); do \
	    echo "$$pkg $$f"; go test -run xxx -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; done; done

soak: build-deps ## all property tests with a fresh seed (SEED=n: that one) and ten times the draws (DRAWS=n), all divisions of GPU models, and Gavel's own figures
	FAIRLEASE_GAVEL=1 go test ./research/gavel -run "TestGavelsOwnNumbers|TestWaterFilling"
	FAIRLEASE_FULL=1 FAIRLEASE_DIVISIONS=all go test ./sidecar/engine -timeout 60m -run '^TestMechanisms$$'
	@seed=$${SEED:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; echo "soak: SEED=$$seed DRAWS=$(DRAWS)"; failed=; \
	for pkg in $$(grep -rlE --include='*_test.go' '$(DRAWN)' . | xargs -n1 dirname | sort -u); do \
	  tests=$$(awk '/^func /{name=$$2; sub(/\(.*/, "", name)} /$(DRAWN)/{print name}' $$(grep -lE '$(DRAWN)' $$pkg/*_test.go) | sort -u | paste -sd'|'); \
	  echo "$$tests" | grep -qE '^Test[A-Za-z0-9_]*([|]Test[A-Za-z0-9_]*)*$$' || { echo "soak: $$pkg: something is drawn outside a test: $$tests" >&2; exit 1; }; \
	  FAIRLEASE_NO_CLUSTER=1 go test -timeout 60m $$pkg -run "^($$tests)\$$" -rapid.seed=$$seed -rapid.checks=$(DRAWS) -rapid.nofailfile || failed="$$failed $$pkg"; done; \
	[ -z "$$failed" ] || { echo "soak: SEED=$$seed fails in$$failed" >&2; exit 1; }

clean: ## remove what was built
	rm -rf bin out tests/browser/node_modules
	@$(MAKE) -s -C slurmplugin clean
