# No server has to run: the tests start a Postgres of their own, or use the one that DATABASE_URL names.

GO ?= go
# The packages whose tests use tables of Edda.
SQL := ./internal/store/audit ./bus ./persistence ./outbox ./internal/store/deadletter ./internal/store/lease ./internal/store/limit ./internal/engine/dispatch ./internal/store/ring ./history/... ./operate/... ./internal/engine/repair ./limit ./scheduler ./scheduler/remote/... ./memory
# Far more than a run takes on a slow machine: they end a test that hangs.
TIMEOUT := 20m
RACE_TIMEOUT := 40m
# make test vets the code itself, and a test without DWARF is linked in two thirds of the time.
FLAGS := -vet=off -ldflags=-w
# .ci/run leaves it to the linters, which vet too.
VET := $(GO) vet ./...
LINT := $(GO) tool -modfile=.ci/tools/go.mod golangci-lint
# The library that moves the clock of a Postgres, which the scenario schedule uses.
FAKETIME := @command -v dpkg >/dev/null && ! ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 && apt-get install -y libfaketime || true
LINT_BELOW := $(GO) tool -modfile=$(CURDIR)/.ci/tools/go.mod golangci-lint

.DEFAULT_GOAL := help
.PHONY: help demo test race roles settings levels nightly bench chaos crash hostile limits order schedule viewers permits remote border otel collector rabbitmq bouncer failover versions web pages alerts docs mutants mutants-random kubernetes licences vulnerabilities snapshot lint fmt

help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1	/' | expand -t 16

demo: ## run a shop of sagas for half a minute, with failures and its pages, and check every order
	$(GO) run ./cmd/edda demo $(ARGS)

test: ## vet and test everything but the benchmarks
	$(VET)
	$(GO) test $(FLAGS) -timeout $(TIMEOUT) ./...

race: ## the same under the race detector
	$(GO) test $(FLAGS) -race -timeout $(RACE_TIMEOUT) ./...

roles: ## run the tests of all that is in SQL as a role that may create nothing
	EDDA_TEST_ROLE=runtime $(GO) test $(FLAGS) -timeout $(TIMEOUT) $(SQL)

settings: ## run the tests of all that is in SQL as that role, under an ICU collation and other defaults of the role
	EDDA_TEST_ROLE=runtime EDDA_TEST_LOCALE=en-US EDDA_TEST_DEFAULTS='default_transaction_isolation=serializable; standard_conforming_strings=off; statement_timeout=5min; search_path=elsewhere' \
		$(GO) test $(FLAGS) -timeout $(TIMEOUT) $(SQL) ./migrations/...

levels: ## run the tests of the scheduler, leases and limits under repeatable read
	EDDA_TEST_DEFAULTS='default_transaction_isolation=repeatable read' $(GO) test $(FLAGS) -timeout $(TIMEOUT) ./scheduler ./internal/engine/dispatch ./internal/store/lease ./internal/store/limit

# A target that fails does not keep the others from running.
NIGHTLY := lint vulnerabilities levels settings race roles versions chaos rabbitmq bouncer failover web mutants
nightly: ## run what takes too long for .ci/run: every long run but the benchmarks
	@red=""; for target in $(NIGHTLY); do echo "== $$target"; $(MAKE) $$target || red="$$red $$target"; done; \
		[ -z "$$red" ] || { echo "failed:$$red"; exit 1; }

bench: ## measure Edda beside its peers, on this machine
	cd bench && $(GO) run . -run step,hot,latency,leased,backlog,timers,schedule,inbox,relay

chaos: ## run every scenario that breaks something on purpose
	$(FAKETIME)
	$(GO) run ./internal/test/chaos
	$(MAKE) border

crash: ## kill workers and Postgres at every statement, and count the messages
	$(GO) run ./internal/test/chaos -scenario crash

hostile: ## send ten minutes of messages that are meant to do harm beside good ones, and count what became of both
	$(GO) run ./internal/test/chaos -scenario hostile

limits: ## change a cluster-wide limit at random while workers are killed and frozen, and count
	$(GO) run ./internal/test/chaos -scenario limits

order: ## keep the order of keys while workers are killed and frozen, and count what overtook
	$(GO) run ./internal/test/chaos -scenario order

schedule: ## run a thousand manifests a second on servers that die, under a clock that jumps, and count
	$(FAKETIME)
	$(GO) run ./internal/test/chaos -scenario schedule

viewers: ## kill workers and the server of the pages while fifty pages are open, and compare what they show with the tables
	$(GO) run ./internal/test/chaos -scenario viewers

permits: ## replay a log in processes that are killed with a transaction open, and compare with the log
	$(GO) run ./internal/test/chaos -scenario permits

remote: ## 10,000 runs over HTTP and 10,000 over JetStream, done by programs without the database, both sides killed, and count
	$(GO) run ./internal/test/chaos -scenario remote $(ARGS)
	cd internal/test/chaos/border && $(GO) run . -scenario remote $(ARGS)

border: ## two databases and a broker between them, all of them killed, and count; prints throughput and lag of a relay
	cd bus/watermill/jetstream && $(GO) test -timeout 5m ./...
	cd internal/test/chaos/border && $(GO) test -timeout 5m ./... && $(GO) run .

otel: ## test the spans and metrics of OpenTelemetry
	cd eddaotel && $(GO) vet ./... && $(GO) test -count=1 -timeout 5m ./...

collector: ## have a real OpenTelemetry Collector receive the spans and metrics of two databases with a broker between them
	cd eddaotel/collector && $(GO) vet ./... && $(GO) test -count=1 -timeout 5m ./...

rabbitmq: ## two databases and a RabbitMQ between them, killed and frozen, and count; and a test for each of its settings
	cd internal/test/chaos/border && $(GO) vet -tags rabbitmq ./...
	cd internal/test/chaos/border && $(GO) test -tags rabbitmq -run RabbitMQ -count=1 -timeout 5m ./brokers ./rabbit
	cd internal/test/chaos/border && $(GO) run . -scenario border -over rabbitmq -for 10s

# The tests of the bus look at sessions and wait for notifications: those of the other packages run endpoints behind it.
bouncer: ## run the tests of what is in SQL behind a real PgBouncer, kill processes there, and count
	EDDA_TEST_BOUNCER=$${EDDA_TEST_BOUNCER:-cache_describe} $(GO) test $(FLAGS) -timeout $(TIMEOUT) \
		-skip "^($$(grep -o '^Test[A-Za-z0-9]*' internal/test/bouncer/direct.txt | paste -sd '|'))$$" \
		$(filter-out ./bus ./operate/vitals,$(SQL))
	$(GO) vet -tags bouncer ./internal/test/bouncer
	$(GO) test -tags bouncer -count=1 -timeout 5m ./internal/test/bouncer

failover: ## promote a standby while workers run, restore a backup to a point in time, and count
	$(GO) vet -tags failover ./internal/test/failover
	$(GO) test -tags failover -count=1 -timeout 5m ./internal/test/failover

versions: ## run the tests of all that is in SQL on PostgreSQL 14 to 18, or on those of VERSIONS
	SQL="$(SQL)" TIMEOUT=$(TIMEOUT) .ci/versions $(VERSIONS)

web: ## have a real Chromium order in the shop of examples/web, look at the pages of eddaui, and read the documentation site
	@command -v chromium >/dev/null || apt-get install -y --no-install-recommends chromium || true
	@command -v chromium >/dev/null || { echo "no chromium: install it, and run make web again"; exit 1; }
	cd examples/web/browser && $(GO) test -count=1 -timeout 5m .
	cd eddaui/browser && $(GO) test -count=1 -timeout 15m .
	cd docs/site/browser && $(GO) test -count=1 -timeout 20m .

pages: ## fill a database with millions of everything, ask eddaui for each page, and print what each costs; flags in ARGS
	$(GO) run ./internal/test/pages $(ARGS)

alerts: ## check the alerts of Prometheus, and make each of them fire
	@command -v promtool >/dev/null || apt-get install -y --no-install-recommends prometheus || true
	@command -v promtool >/dev/null || { echo "no promtool: install prometheus, and run make alerts again"; exit 1; }
	cd eddaprom/grafana && promtool check rules alerts.yaml && promtool test rules alerts_test.yaml
	$(GO) test -count=1 -run 'Alert|Dashboard|Expression' ./eddaprom

docs: ## build the documentation site into docs/site/.public, of VERSION if it is given; ARGS="-serve :8080" shows it
	cd docs/site && $(GO) run . -version "$(VERSION)" $(ARGS)

mutants: ## break the engine on purpose, and see that the tests notice
	$(GO) run ./internal/test/mutants -record internal/test/mutants/record.txt -page docs/internals/mutants.md

N ?= 300
mutants-random: ## break N lines at random, drawn by SEED, and see that the tests notice; ARGS="-list" shows them
	$(GO) run ./internal/test/mutants -random $(N) -seed $(or $(SEED),$$(git rev-parse HEAD)) \
		-record internal/test/mutants/random.txt -page docs/internals/mutants.md $(ARGS)

kubernetes: ## check the manifests and container files of examples/kubernetes against the types of Kubernetes
	cd examples/kubernetes/check && $(GO) vet ./... && $(GO) test -count=1 -timeout 5m ./...

licences: ## write the page of the licences of all dependencies, and refuse those that ask more than a notice
	cd .ci/licences && $(GO) run . -write && $(GO) vet ./... && $(GO) test -count=1 -timeout 5m ./...

vulnerabilities: ## look for known vulnerabilities that are called, with the newest list; those of Go itself are only told
	cd .ci/vulnerabilities && $(GO) vet ./... && $(GO) test -count=1 ./... && $(GO) run . -newest

snapshot: ## build what a release would be, of this commit, into dist, and run what runs here
	.ci/snapshot

lint: ## run the linters, pinned in .ci/tools
	$(LINT) run --build-tags bouncer,failover ./...
	cd bench && $(GO) vet ./...
	cd examples/web/browser && $(GO) vet ./...
	cd eddaui/browser && $(GO) vet ./...
	cd docs/site/browser && $(GO) vet ./...
	cd bus/watermill/jetstream && $(LINT_BELOW) run ./...
	cd eddaotel && $(LINT_BELOW) run ./...
	cd eddaotel/collector && $(LINT_BELOW) run ./...
	cd internal/test/chaos/border && $(LINT_BELOW) run --build-tags rabbitmq ./...
	cd examples/two-databases && $(LINT_BELOW) run ./...
	cd examples/remote && $(LINT_BELOW) run ./...
	cd examples/kubernetes/check && $(LINT_BELOW) run ./...
	cd .ci/licences && $(LINT_BELOW) run ./...
	cd .ci/vulnerabilities && $(LINT_BELOW) run ./...
	cd docs/site && $(LINT_BELOW) run ./...

fmt: ## format the Go files
	gofmt -w .
