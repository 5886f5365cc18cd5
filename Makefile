# Every target works on a fresh checkout: what is missing is set up first.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Paths of the checkout stay out of the programs, so that checkouts share the build cache.
export GOFLAGS := $(strip $(shell go env GOFLAGS) -trimpath)

# Without tables for debuggers, which are a quarter of the program. Panics still show their stack.
SLIM := -ldflags='-s -w'

# The packages of the main module that hold hand-written or generated Go.
GO_DIRS := $(wildcard cmd web api tenants pipeline billing migrations static policy *.go)

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## set up what is missing and start the product on http://127.0.0.1:8080
	@deploy/setup.sh postgresql
	@[ -x bin/palimpsest ] || echo "Building the program; the first time takes a minute or two."
	@go build $(SLIM) -o bin/palimpsest ./cmd/palimpsest
	@exec bin/palimpsest serve

.PHONY: demo
demo: ## the product with months of a made-up team's work, to look around in; no provider key, no model
	@deploy/setup.sh postgresql
	@[ -x bin/palimpsest ] || echo "Building the program; the first time takes a minute or two."
	@go build $(SLIM) -o bin/palimpsest ./cmd/palimpsest
	@exec bin/palimpsest demo

.PHONY: demo-clean
demo-clean: ## remove the demo's data; the next start makes it anew
	@go build $(SLIM) -o bin/palimpsest ./cmd/palimpsest
	@bin/palimpsest demo clean

.PHONY: pictures
pictures: ## make the pictures of README.md from the demo; writes docs/pictures
	@deploy/setup.sh postgresql chromium
	@go build $(SLIM) -o bin/palimpsest ./cmd/palimpsest
	@rm -rf bin/pictures
	go run ./cmd/tools/pictures -binary bin/palimpsest -write docs/pictures
	@rm -rf bin/pictures

# What tests start, built once for all packages.
TEST_PROGRAMS := $(CURDIR)/bin/test

.PHONY: test-programs
test-programs: ## build the programs that tests start; make test does it
	@mkdir -p $(TEST_PROGRAMS)
	go build $(SLIM) -o $(TEST_PROGRAMS)/ ./cmd/palimpsest ./cmd/tools/testrun
	cp -f "$$(go -C deploy/tools/versitygw tool -n versitygw)" "$$(go -C deploy/tools tool -n stripe-mock)" $(TEST_PROGRAMS)/ # linked once and kept in the build cache

# The packages that take longest start first, so that none of them is left alone at the end.
LONG_TESTS := ./web/walks ./cmd/palimpsest ./web/pages ./api/manage ./web ./tenants/tenantsdb ./pipeline/modules/ipc ./pipeline/replay
# Packages at once: many wait for a database or a browser, and each runs tests in parallel.
TEST_JOBS := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) / 2 + 1)))
TEST = PALIMPSEST_TEST_PROGRAMS=$(TEST_PROGRAMS) deploy/inmemory.sh $(TEST_PROGRAMS)/testrun go test -p $(TEST_JOBS)

.PHONY: test
test: test-programs ## set up what is missing and run the tests of a change: all of them, with a tenth of each large sweep
	@deploy/setup.sh postgresql browser redis-server pgbouncer nodejs npm
	$(TEST) -timeout 20m $(LONG_TESTS) ./...

.PHONY: test-all
test-all: test-programs ## every test with every input, and long fuzzing; writes .ci/test-all, which CI wants to be young
	@deploy/setup.sh postgresql browser redis-server pgbouncer nodejs npm
	go -C deploy/tools/checks build -o $(TEST_PROGRAMS)/checks .
	PALIMPSEST_TEST_ALL=1 $(TEST) -timeout 60m $(LONG_TESTS) ./...
	$(MAKE) fuzz FUZZ_TIME=200000x
	deploy/testall.sh record

.PHONY: test-calendar
test-calendar: ## run the tests on a Monday, at New Year, on a leap day, at both changes of DST, and bare; DATES="monday bare" PACKAGES=./web
	@deploy/setup.sh postgresql browser redis-server pgbouncer nodejs npm faketime
	@DATES='$(DATES)' PACKAGES='$(PACKAGES)' ARGS='$(ARGS)' deploy/calendar/run.sh

# The cuts that every request and every answer goes through.
# A number of inputs, not a time: fuzzing that a time ends reports now and then a deadline that is no finding
# (https://go.dev/issue/75804).
FUZZ_TIME := 1000000x
FUZZ_TARGETS := pipeline/wire:FuzzOpenCutsAsEncodingJSONDoes pipeline/wire:FuzzObjects pipeline/wire:FuzzSplitter pipeline/session:FuzzReader

.PHONY: fuzz
fuzz: ## search for inputs that break the cutting of bodies and answers, FUZZ_TIME each
	@for target in $(FUZZ_TARGETS); do echo "fuzzing $$target"; \
		go test ./$${target%%:*} -run '^$$' -fuzz "^$${target##*:}$$" -fuzztime $(FUZZ_TIME); done

# One of the targets, so that successive commits take turns.
.PHONY: fuzz-turn
fuzz-turn: ## fuzz the one cut whose turn it is at this commit
	@$(MAKE) fuzz FUZZ_TARGETS="$(word $(shell echo $$((0x0$$(git rev-parse --short=7 HEAD) % $(words $(FUZZ_TARGETS)) + 1))),$(FUZZ_TARGETS))"

# An older version: the last one before the newest migration after the baseline.
COMMIT ?= $(addsuffix ^,$(shell git log --diff-filter=A --format=%h -1 -- 'migrations/001[4-9]*.sql' 'migrations/00[2-9]*.sql'))

.PHONY: rolling
rolling: ## an older version, COMMIT=…, serves on while this one comes up and migrates
	@[ -n '$(COMMIT)' ] || { echo "No migration follows the baseline yet: name an older version with COMMIT=…"; exit 1; }
	@deploy/setup.sh postgresql
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; git archive '$(COMMIT)' | tar -x -C "$$dir"; \
		(cd "$$dir" && go build -o older ./cmd/palimpsest); \
		OLDER="$$dir/older" go test -count=1 -v ./cmd/palimpsest -run '^TestOlderVersionServesOnWhileNewerComesUp$$'

.PHONY: chaos
chaos: ## kill, stop, fill and delay the parts of three replicas while sessions run, as root; ARGS="-seed 7 -rounds 2"
	@deploy/setup.sh postgresql redis-server pgbouncer
	@mkdir -p bin/chaos
	go build -o bin/chaos/palimpsest ./cmd/palimpsest
	go build -overlay "$$(deploy/calendar/overlay.sh bin/chaos/clock)" -o bin/chaos/palimpsest-skewed ./cmd/palimpsest
	go -C deploy/tools/versitygw build -o $(CURDIR)/bin/chaos/versitygw github.com/versity/versitygw/cmd/versitygw
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; git archive '$(COMMIT)' | tar -x -C "$$dir"; \
		cd "$$dir" && go build -o $(CURDIR)/bin/chaos/palimpsest-older ./cmd/palimpsest
	go run ./cmd/tools/chaos -programs bin/chaos $(ARGS)

.PHONY: check
check: quick lint secrets vulnerabilities test-programs ## formatting, vet, lint, scanners, template drift, module sums, tests with the race detector
	@deploy/setup.sh postgresql browser redis-server pgbouncer nodejs npm gcc
	CGO_ENABLED=1 $(TEST) -race -p 2 -timeout 40m $(LONG_TESTS) ./...

.PHONY: quick
quick: ## the part of check that takes seconds: formatting, vet, wording, template drift, module sums
	@unformatted=$$(gofmt -l $(GO_DIRS)); if [ -n "$$unformatted" ]; then echo "not formatted with gofmt:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	go test -run "^TestTextIsPlainEnglish$$" ./policy
	deploy/templdrift.sh
	go mod verify

.PHONY: lint
lint: bin/golangci-lint ## every linter of .golangci.yaml
	bin/golangci-lint run

# Pinned in a module file of its own, so that the linter's 200 dependencies
# stay out of the product's.
bin/golangci-lint: deploy/tools/go.mod deploy/tools/go.sum
	go -C deploy/tools build -o ../../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: secrets
secrets: bin/gitleaks ## look for secrets in what is committed here
	bin/gitleaks dir . --no-banner --redact

.PHONY: vulnerabilities
vulnerabilities: bin/govulncheck ## look for known vulnerabilities in what the program calls
	deploy/vulncheck.sh

bin/gitleaks: deploy/tools/gitleaks/go.mod deploy/tools/gitleaks/go.sum
	go -C deploy/tools/gitleaks build -o ../../../bin/gitleaks github.com/zricethezav/gitleaks/v8

bin/govulncheck: deploy/tools/govulncheck/go.mod deploy/tools/govulncheck/go.sum
	go -C deploy/tools/govulncheck build -o ../../../bin/govulncheck golang.org/x/vuln/cmd/govulncheck

.PHONY: release
release: ## build the programs and packages of a release into dist; deploy/release.sh lists the variables
	deploy/release.sh

# The second build has a folder and a cache of its own, so that nothing is taken over from the first.
.PHONY: release-check
release-check: ## build the release for one platform in two folders, compare the bytes, install the packages, and time a new person's way; PLATFORMS=linux/amd64
	@deploy/setup.sh postgresql npm
	go -C deploy/tools/release test ./...
	@dir=$$(mktemp -d); trap 'chmod -R u+w "$$dir"; rm -rf "$$dir"' EXIT; \
		export PLATFORMS="$${PLATFORMS:-$$(go env GOOS)/$$(go env GOARCH)}"; \
		export RELEASE_URL="$${RELEASE_URL:-https://example.com/release}"; \
		git clone -q --depth 1 "file://$(CURDIR)" "$$dir/elsewhere"; \
		deploy/release.sh "$$dir/first"; GOCACHE="$$dir/cache" "$$dir/elsewhere/deploy/release.sh" "$$dir/second"; \
		cmp "$$dir/first/SHA256SUMS" "$$dir/second/SHA256SUMS" && echo "Both builds have the same bytes."; \
		RELEASE_DIST="$$dir/first" go -C deploy/tools/release test -count=1 -run Built -v . | grep -v '^=== '; \
		go run ./cmd/tools/firstrun -archive "$$dir"/first/palimpsest_*_linux_"$$(go env GOARCH)".tar.gz

.PHONY: generate
generate: ## write the Go files of the templates anew
	go tool templ generate -path web

.PHONY: bench
bench: ## Go benchmarks and the overhead of the proxy; writes docs/performance.md
	@deploy/setup.sh postgresql
	@go build $(SLIM) -o bin/palimpsest ./cmd/palimpsest
	go test -p 1 -run '^$$' -bench . -benchmem -timeout 30m ./pipeline/... | tee bin/parts.txt
	go run ./cmd/tools/apibench/overhead -binary bin/palimpsest -parts bin/parts.txt -write docs/performance.md

.PHONY: bench-replicas
bench-replicas: ## what three replicas do on one database, beside one, by the CPU time that they take; prints what docs/performance.md quotes
	@deploy/setup.sh postgresql
	@go build $(SLIM) -o bin/palimpsest ./cmd/palimpsest
	go run ./cmd/tools/apibench/overhead -binary bin/palimpsest -replicas 3 -only '1 KB, 64 clients'

.PHONY: bench-neighbors
bench-neighbors: ## how fast a workspace is beside a noisy one; prints what docs/performance.md quotes
	go test -run '^$$' -bench Neighbor -benchtime 3000x ./api ./cmd/palimpsest

.PHONY: bench-bombs
bench-bombs: test-programs ## what the costliest requests of 31 MiB take of the program, one at a time; fails beyond 2 s of CPU or 124 MB
	@deploy/setup.sh postgresql
	PALIMPSEST_TEST_PROGRAMS=$(TEST_PROGRAMS) go test -run '^$$' -bench '^BenchmarkBomb$$' -benchtime 1x -v ./cmd/palimpsest

.PHONY: bench-compaction
bench-compaction: ## compare ways to compact sessions; writes docs/compaction-bench.md; ARGS=-quick, -vast (a window of a million alone) -kept (what is forgotten) or -curve (cost against forgetting)
	go run ./cmd/tools/compactionbench/table -write docs/compaction-bench.md $(ARGS)

.PHONY: bench-memory
bench-memory: bench-memory-speed ## measure what the memory finds again and brings back, and how fast; writes docs/memory-bench.md; DOCUMENTS=1000000 DATASETS=dir (LoCoMo, BEAM, LongMemEval)
	go run ./cmd/tools/memorybench/table -datasets '$(DATASETS)' -write docs/memory-bench.md $(ARGS)

.PHONY: bench-memory-speed
bench-memory-speed: ## the speed of the search alone, which takes longest; DOCUMENTS=1000000
	@deploy/setup.sh postgresql
	@mkdir -p bin
	PALIMPSEST_BENCH_DOCUMENTS=$(or $(DOCUMENTS),1000000) go test -run '^$$' -bench 'Search$$' -benchtime 50x -v -timeout 60m ./pipeline/archive/archivedb | tee bin/memory.txt
	go run ./cmd/tools/memorybench/table -speed bin/memory.txt -write docs/memory-bench.md

.PHONY: bench-dashboard
bench-dashboard: ## how fast every page of a large workspace is there; writes docs/dashboard-bench.md; EXCHANGES=1000000
	@deploy/setup.sh postgresql
	PALIMPSEST_BENCH_EXCHANGES=$(or $(EXCHANGES),1000000) PALIMPSEST_BENCH_WRITE=$(CURDIR)/docs/dashboard-bench.md \
		go test -run '^$$' -bench 'Pages$$' -benchtime 60x -timeout 90m ./web

.PHONY: bench-session
bench-session: ## how fast the page of a long session is there, and how large; prints what docs/dashboard-bench.md quotes; TURNS=10000
	@deploy/setup.sh postgresql
	PALIMPSEST_BENCH_TURNS=$(or $(TURNS),10000) go test -run '^$$' -bench 'Session$$' -benchtime 60x -v -timeout 30m ./web/pages

.PHONY: clients
clients: ## run the newest clients from npm through the program, in a closed network, and print a table; ARGS="-pinned -client codex"
	@deploy/setup.sh postgresql nodejs npm
	@go build $(SLIM) -o bin/palimpsest ./cmd/palimpsest
	go run ./cmd/tools/apiclients/table -binary bin/palimpsest $(ARGS)
