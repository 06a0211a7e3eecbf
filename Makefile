GO       ?= go
FUZZTIME ?= 20s
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
SUITE    ?= trixie
MANIFESTS = $(shell sed -n "s/.*image: curfew:\([^ ]*\).*/\1/p" deploy/kubernetes/standalone.yaml)
COMMITTED = $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd)

LINT_VERSION = v2.15.0
LINT         = .cache/bin/golangci-lint-$(LINT_VERSION)

SUM_VERSION = v1.13.0
SUM         = $(CURDIR)/.cache/bin/gotestsum-$(SUM_VERSION)

# Of all that Go does here: what is compiled names no folder, so that another checkout finds it in Go's cache, and has nothing for a debugger,
# which is a sixth of a compiler's work: `go build` and `go test` without make have it. grpcnotrace leaves out debug pages of gRPC, which
# OpenTelemetry's libraries bring along and Curfew does not speak. The pages of the dashboard, and the commands of the Redis client with
# their five kinds of client, are thousands of calls of small functions: copied into their callers (inlined) these would take 4 MB more.
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS) -trimpath -tags=grpcnotrace -gcflags=all=-dwarf=false \
	'-gcflags=curfew/cmd/internal/dashboard/...=-l -dwarf=false' '-gcflags=github.com/redis/...=-l -dwarf=false')

# One binary, nothing to link against: it runs in an empty directory.
# Compilers that collect their garbage less often take a twelfth less time, and some more memory.
BUILD = CGO_ENABLED=0 GOGC=400 $(GO) build -ldflags '-s -w -X main.version=$(VERSION)'
# Packages are compiled in two ways at most: as released, and for the race detector.
RELEASED = CGO_ENABLED=0 $(GO) test -vet=off -timeout 20m
RACED    = $(GO) test -race -vet=off -timeout 20m
# `make test` runs go test with the flags $(1) on the packages $(2), and once more, alone, each test that failed, unless more than a few did or the race
# detector saw something: where two processors stand still for seconds, one of three thousand tests fails now and then. Those are told at the end.
TWICE = $(SUM) --format standard-quiet --hide-summary skipped --rerun-fails=1 --rerun-fails-max-failures=6 --rerun-fails-run-root-test \
	--rerun-fails-abort-on-data-race --rerun-fails-report $(CURDIR)/.cache/failed/$(subst .,,$@)-$(words $(2)) --packages '$(2)' -- -vet=off -timeout 20m $(1)
RELEASED_TWICE = CGO_ENABLED=0 $(TWICE)
RACED_TWICE = nice -n 5 $(TWICE) -race
# The crash tests of the store that choose which goroutine runs: the tag replaces its locks.
SCHEDULED = $(RELEASED) -tags schedule -run '^TestSchedule' ./broker/store
UNIT     = $(shell $(GO) list ./... | grep -v /integration)
INTEGRATION = $(shell $(GO) list ./integration/...)
# Packages without goroutines, where the race detector has nothing to see, and those of commands, pages and the reference, whose tests run a broker that it
# watches elsewhere: in cmd/internal/node, and beneath.
PURE     = $(addprefix curfew/,broker/access broker/amqp broker/amqp10 broker/chunked broker/definitions broker/exchange broker/internal/message \
	broker/operate/admin broker/policy broker/queue broker/server/internal/convert broker/servicebus broker/servicebus/atom cmd/internal/commands cmd/internal/dashboard \
	$(addprefix cmd/internal/dashboard/internal/,letters overview ui) cmd/internal/queues cmd/internal/reference cmd/internal/settings \
	monitor/changes monitor/printable monitor/rabbitmq/plan)
THREADED = $(filter-out $(PURE),$(UNIT))

# Of ./integration, the tests that run the broker within the test's process, where others may keep the machine busy.
IN_PROCESS = ^Test(Login|RefusedLoginOnTheWire|Permissions|WhatEndsConnections|LimitsOfUsersAndVHosts|DefinitionsGoBothWays|Policies|ExpirationPage|Stories)$$
# The tests that mount a file system, install a package, or run Curfew in a network or a time of its own.
PRIVILEGED = ^Test(Amqp091Own|AzureOwn|DiskFull|DiskFails|DiskStandsStill|SuspendedWhileDown|AbsoluteTimesAfterAWrongClock|DebInstalled|RpmInstalled|Newcomer)$$

# Tests of packages that compute for long and start few goroutines, or measure memory or the processor: the race detector takes most of
# their time and sees the same code in their neighbours. Of the crashes and shortages of the store it sees some.
LONG = ^Test(LookAtTheCeilings|TornTailAtEveryByte|KilledReplay|ManyLetters|CausesOfManyLettersMoveThem|HostileBodies|PredictionsComeTrue|SortedLikeASet|ATTLThatWasRaised|DeadlinesByAnotherClock|MixedTTLsExpireInTimeAndTheRestStaysInOrder|GenerationsKeepTheOrder|EqualMessagesAfterOthersWereConsumed|MessagesThatDoNotExpireCostFewReturns|ParkedLettersStand|AHealthyNight|ReceiptAndExpiryAreOne|CommandsAreWhole|TransactionIsFoundWholeOrNotAtAll|NothingIsWrittenForAFullTarget|PublishersOfAQueueShareItsCredit|DeepQueuesDoNotStopPublishers|StuckConsumersHardlySlowPublishers|SlowConsumersHardlySlowPublishers|PublishersKeepThePaceOfConsumers|EmptiedQueuesGiveMemoryBack|ExpiryAllocatesNothing|NoStepTouchesVeryMany|RouteThroughManyExchanges|Footprint|WhatIsDeclaredIsCounted|TransactionIsBounded|UnfinishedPublishesAreBounded|LooksInProportion|StormTakesLittleMemory|WindowAgainstAModel|Redis|DeadWebhookIsGivenUpAndLogged|MillionsAreNotCopied|ScheduledAmongMany|LongListsAreWrittenInPieces|ServiceBusDeferred|DirectRepliesAreBounded|WhatIsNotSavedIsNotThere|WhatIsThereIsSaved|LettersUnderWayAreOnceAfterACrash|AStormLeavesNoMemoryBehind|GapsAreRecorded|NewestFirst)$$

.DEFAULT_GOAL := help
.PHONY: .test-curfew .test-pure .test-quietly .test-rest .test-broker .test-simulation .test-units .test-rabbitmq .test-in-process .test-kubernetes .test-release .test-faults .test-long help build run demo check lint test test-privileged test-rabbitmq4 deps fuzz soak bench docs microbench image rabbitmq-plugin release release-check set-version clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/curfew, a static binary
	$(BUILD) -o bin/curfew ./cmd/curfew

run: build ## build and run Curfew on 127.0.0.1:5672 (needs only Go; no Redis)
	./bin/curfew serve

demo: build ## watch deadlines fire on a queue nobody reads
	./bin/curfew demo

check: lint ## before each commit: formatting, vet, linters, language, unit tests (needs only Go; under 2 minutes)
	$(RELEASED) -short $(UNIT) ./integration/house
	$(RELEASED) -run '^TestTable$$' ./integration/faults # each fault names tests that exist
	$(SCHEDULED) -seeds 20

lint: $(LINT) ## formatting, vet, staticcheck and the other linters of .golangci.yml
	CGO_ENABLED=0 $(LINT) run --allow-serial-runners ./...

$(LINT): # built once, with Go alone
	GOBIN=$(CURDIR)/.cache/bin CGO_ENABLED=0 $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	mv .cache/bin/golangci-lint $@

$(SUM): # built once, with Go alone
	GOBIN=$(CURDIR)/.cache/bin CGO_ENABLED=0 $(GO) install gotest.tools/gotestsum@$(SUM_VERSION)
	mv .cache/bin/gotestsum $@

test: export TEST_CURFEW = $(CURDIR)/.cache/test/curfew
test: deps $(LINT) $(SUM) ## everything, with the race detector, against real Redis, RabbitMQ and foreign clients (20 minutes)
	@rm -rf .cache/failed && mkdir -p .cache/failed
	$(MAKE) --no-print-directory -j3 .test-broker .test-rabbitmq .test-in-process .test-pure .test-units .test-simulation .test-faults .test-long .test-kubernetes
	$(MAKE) --no-print-directory -j2 .test-quietly $(WITH) .test-release .test-rest
	$(RELEASED) -parallel 6 -run '^TestNeighbour$$' ./integration/faults
	@find .cache/failed -type f -exec sed 's/^/failed once: /' {} + # none is the usual case

.test-curfew: VERSION = v1.2.3
.test-curfew: # linked once for all packages that run it as users do
	$(BUILD) -o .cache/test/curfew ./cmd/curfew
# What does not need it waits, too: they begin in their order.
.test-rabbitmq .test-in-process .test-pure .test-units .test-simulation .test-faults .test-long .test-kubernetes: .test-curfew

# Of the simulation's seeds, those with monitors: the others have no goroutines that race, and .test-rest has all.
# Three of these run at a time: the unit tests keep the processors busy, those beside RabbitMQ mostly wait for its nodes. What measures lateness in
# milliseconds is not among them, nor what is in WITH (test-privileged, or nothing): amqp091-go's suite hangs where it is kept waiting. Where they
# compete, RabbitMQ's have three quarters of the processors: its nodes fail in ways of their own when they are starved. The last is mostly compiled,
# which takes what processors there are.
.test-broker:
	CRASH_POINTS=some $(call RACED_TWICE,-skip '$(LONG)',$(filter curfew/broker%,$(THREADED)))
.test-units:
	$(call RACED_TWICE,-skip '$(LONG)',$(filter-out curfew/broker%,$(THREADED)))
.test-simulation:
	SIMULATION_SEEDS=12 $(call RACED_TWICE,-run '^TestSimulation$$/^seeds$$/^(2|3|10|12)$$|^TestHistoriesAreLinearizable$$',./integration/simulation)
.test-rabbitmq:
	$(call RELEASED_TWICE,-parallel 6,./integration/rabbitmq)
.test-in-process:
	$(call RELEASED_TWICE,-run '$(IN_PROCESS)',./integration)
.test-kubernetes:
	cd integration/kubernetes && export CGO_ENABLED=0 && $(call RELEASED_TWICE,,.) && $(CURDIR)/$(LINT) run --allow-serial-runners .
.test-faults:
	$(call RELEASED_TWICE,-parallel 6 -skip '$(PRIVILEGED)|^TestNeighbour$$',./integration/faults)
.test-pure: # those of commands wait for most of a minute: not at the end, when nothing else is left
	nice -n 5 env $(call RELEASED_TWICE,,$(PURE))
.test-long:
	$(call RELEASED_TWICE,-run '$(LONG)|^Test(CrashAtEveryOperation|Crashes|Shortages|ReserveGone|MovesWaitForSpace)$$',./broker ./broker/deadletters ./broker/internal/topology ./broker/management ./broker/server ./broker/server/internal/deliveries ./broker/store ./cmd/internal/node ./monitor ./monitor/audit ./monitor/incident ./monitor/rabbitmq/keeper ./monitor/schedule ./scheduler)
	$(SCHEDULED)
.test-quietly:
	$(call RELEASED_TWICE,-parallel 8 -skip '$(IN_PROCESS)|$(PRIVILEGED)',./integration)
.test-release: # with what test-privileged would run: a release is made once for both
	cd deploy/release && export CGO_ENABLED=0 && nice -n 5 env $(call RELEASED_TWICE,$(if $(WITH),,-skip '$(PRIVILEGED)'),.) && $(CURDIR)/$(LINT) run --allow-serial-runners .
.test-rest:
	SIMULATION_SEEDS=12 nice -n 5 env $(call RELEASED_TWICE,-p 1 -parallel 6 -skip '$(PRIVILEGED)|^TestHistoriesAreLinearizable$$',$(filter-out %/integration %/rabbitmq %/faults,$(INTEGRATION)))

test-privileged: deps $(SUM) ## the tests that need root with CAP_SYS_ADMIN and loop devices: disks that fill, fail or stand still, other clocks, packages
	$(call RELEASED_TWICE,-p 2 -run '$(PRIVILEGED)',./integration ./integration/faults ./integration/pages)
	$(if $(WITH),,cd deploy/release && $(call RELEASED_TWICE,-run '$(PRIVILEGED)',.))

test-rabbitmq4: deps ## the tests beside RabbitMQ against a RabbitMQ 4 that is fetched into .cache: SUITE=trixie has 4.0, SUITE=forky 4.3; no root
	.ci/rabbitmq4 $(SUITE)
	TEST_RABBITMQ=$(CURDIR)/.cache/rabbitmq4/$(SUITE) $(RELEASED) -parallel 6 -v ./integration/rabbitmq

deps: ## install what the tests need (apt-get as root or through sudo; npm into .cache)
	@.ci/deps

fuzz: ## run each fuzz target for FUZZTIME (20s)
	@for pkg in $(UNIT); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "== $$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done; \
	done

soak: deps ## the long run: 200 kills, 500 seeds, 60 bad days beside RabbitMQ, every crash point and those of its recovery, 10,000 schedules of the store, recovery fuzzed, the build from nothing: 1 hour
	CRASH_POINTS=all $(GO) test -v -timeout 60m -run 'TestCrashAtEveryOperation$$|TestCrashes$$' ./broker/store
	$(SCHEDULED) -seeds 10000
	$(GO) test -run '^$$' -fuzz '^FuzzRecovery$$' -fuzztime 5m ./broker/store
	SIMULATION_SEEDS=500 $(GO) test -v -timeout 60m -run 'TestSimulation$$' ./integration/simulation
	FAULTS_KILLS=200 $(GO) test -v -timeout 60m -run 'TestKilled$$' ./integration/faults
	FAULTS_CEILINGS=1 $(GO) test -v -timeout 60m -run 'TestNeighbour$$/^most' ./integration/faults
	KEEPER_ROUNDS=60 $(GO) test -v -timeout 60m -run 'TestRounds$$' ./integration/rabbitmq
	KEEPER_QUIET=1 $(GO) test -v -timeout 10m -run 'TestReplicasOnThreeNodes$$' ./integration/rabbitmq
	$(GO) test -v -timeout 20m -run '^$$' -bench Delays -benchtime 1x ./integration/rabbitmq
	PAGES_COLD=1 $(GO) test -v -timeout 20m -run '^TestNewcomer$$' ./integration/pages

bench: deps ## Curfew beside RabbitMQ, and its goals: 15 minutes (BENCH=quick: 2; BENCH_ONLY=P1,P6: single ones)
	$(GO) run ./integration/bench

docs: ## write the pages of docs/reference, docs/benchmarks.md and the OpenAPI document from the code and the last `make bench`
	$(GO) test ./cmd/internal/reference -write

microbench: ## Go benchmarks with allocations, for benchstat
	$(GO) test -run '^$$' -bench . -benchmem $(UNIT)

image: ## container image curfew:VERSION, also as curfew:latest and as what the manifests name (needs docker; `make release` makes one without)
	docker build --build-arg VERSION=$(VERSION) --build-arg REVISION=$$(git rev-parse HEAD) --build-arg CREATED=$(COMMITTED) -t curfew:$(VERSION:v%=%) -t curfew:$(MANIFESTS) -t curfew .

rabbitmq-plugin: ## dist/curfew_delayed-VERSION.ez, the exchange type x-delayed-message for RabbitMQ 4.3, which is fetched into .cache (needs erlc and apt-get; no root)
	.ci/rabbitmq4 forky
	deploy/rabbitmq/delayed/build .cache/rabbitmq4/forky/usr/lib/rabbitmq/lib/rabbitmq_server-*/plugins '$(VERSION:v%=%)' dist

release: ## archives, packages, image, SBOM, formula and checksums of VERSION=v0.1.0 into dist (needs only Go)
	@test -z "$$(git status --porcelain)" || { echo "Commit first: a release is built from a commit."; exit 1; }
	cd deploy/release && CGO_ENABLED=0 $(GO) run . -root $(CURDIR) -out $(CURDIR)/dist -version '$(VERSION)' \
		-commit $$(git rev-parse HEAD) -time $(COMMITTED) $(if $(DOWNLOADS),-downloads '$(DOWNLOADS)')

release-check: ## everything that a release has, built twice: in two folders, each time from nothing, the same bytes (10 minutes)
	cd deploy/release && export CGO_ENABLED=0 && RELEASE_TARGETS=all $(GO) test -count=1 -timeout 60m -v -run '^TestReproducible$$' .

set-version: ## write VERSION=v0.2.0 into the chart, the manifests and the compose files
	cd deploy/release && CGO_ENABLED=0 $(GO) run . -root $(CURDIR) -set '$(VERSION)'

clean: ## remove what the targets above made
	rm -rf bin dist .cache
