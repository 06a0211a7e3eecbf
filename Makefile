GO          ?= go
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME    ?= 20s
BENCHTIME   ?= 1s
KILLS       ?= 200
SEEDS       ?= 500
SOAKFUZZ    ?= 5m
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)

# One binary, nothing to link against: it runs in an empty directory.
BUILD = CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)'
# Timing is measured in integration, so it has the machine for itself.
UNIT  = $(shell $(GO) list ./... | grep -v '/integration')

.DEFAULT_GOAL := help
.PHONY: help build run demo test test-short deps lint fmt fuzz soak bench bench-readme microbench image clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/curfew, a static binary
	$(BUILD) -o bin/curfew ./cmd/curfew

run: build ## build and run Curfew on 127.0.0.1:5672 (needs only Go; no Redis)
	./bin/curfew serve

demo: build ## watch deadlines fire on a queue nobody reads
	./bin/curfew demo

# The flags are few, so that the go tool compiles packages twice at most: for the race detector, and as they are released.
test: deps ## everything, with the race detector, against real Redis, RabbitMQ and foreign clients
	$(GO) vet -race ./...
	$(GO) test -race -vet=off -timeout 20m $(UNIT)
	$(GO) test -race -vet=off -p 1 -parallel 6 -timeout 20m ./integration/...
	CGO_ENABLED=0 $(GO) test -trimpath -vet=off -run 'TestNeighbour$$' ./integration/faults # what the race detector would slow down
	cd integration/kubernetes && export CGO_ENABLED=0 && $(GO) vet -trimpath . && $(GO) test -trimpath -vet=off .

test-short: ## the packages' own tests, without race detector and foreign clients
	$(GO) test $(UNIT)

deps: ## install what the tests need (apt-get as root or through sudo; npm into .cache)
	@.ci/deps

lint: ## gofmt, go vet, staticcheck
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "gofmt needed:"; echo "$$files"; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	cd integration/kubernetes && $(GO) run $(STATICCHECK) ./...

fmt: ## gofmt every file
	gofmt -w .

fuzz: ## run each fuzz target for FUZZTIME (20s)
	@for pkg in $(UNIT); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "== $$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done; \
	done

soak: deps ## the long run: 200 kills, 500 seeds, every crash point and those of its recovery, recovery fuzzed: half an hour
	CRASH_POINTS=all $(GO) test -v -timeout 60m -run 'TestCrashAtEveryOperation$$|TestCrashes$$' ./broker/store
	$(GO) test -run '^$$' -fuzz '^FuzzRecovery$$' -fuzztime $(SOAKFUZZ) ./broker/store
	SIMULATION_SEEDS=$(SEEDS) $(GO) test -v -timeout 60m -run 'TestSimulation$$' ./integration/simulation
	FAULTS_KILLS=$(KILLS) $(GO) test -v -timeout 60m -run 'TestKilled$$' ./integration/faults

bench: deps ## Curfew beside RabbitMQ, and its goals: 15 minutes (BENCH=quick: 2; BENCH_ONLY=P1,P6: single ones)
	$(GO) run ./integration/bench

bench-readme: ## put the results of the last `make bench` into README
	$(GO) run ./integration/bench -readme README.md

microbench: ## Go benchmarks with allocations, for benchstat (BENCHTIME=1s)
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) $(UNIT)

image: ## container image curfew:VERSION (needs docker)
	docker build --build-arg VERSION=$(VERSION) --build-arg REVISION=$$(git rev-parse HEAD) -t curfew:$(VERSION) .

clean: ## remove what the targets above made
	rm -rf bin .cache
