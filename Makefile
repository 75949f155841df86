.DEFAULT_GOAL := help
.PHONY: help demo chaos up test race check bench fmt state-machine

help: ## show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

demo: ## charge a thousand intents once, through faults and a killed worker, and prove it
	go run ./cmd/oncepay-dev demo

chaos: ## break real processes and their connections for a minute, at random, and prove the same
	go run ./cmd/oncepay-dev chaos

up: ## run the whole stack until Ctrl-C
	go run ./cmd/oncepay-dev up --env-file .env.dev

test: ## run all tests, on real PostgreSQL and JetStream that they start themselves
	go test ./...

race: ## run all tests with the race detector
	go test -race ./...

check: ## all that CI checks
	.ci/run

bench: ## measure the throughput of this machine
	go run ./cmd/oncepay-dev bench

fmt: ## format the code
	gofmt -w .

state-machine: ## write docs/STATE_MACHINE.md anew from payments/status.go
	go run ./cmd/internal/tidy/statemachine > docs/STATE_MACHINE.md
