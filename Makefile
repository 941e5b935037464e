# Needs Go and make (GNU, 4.3 is enough), and git for the version. The race detector also needs a C
# compiler. Everything else comes through the Go module proxy, at the versions in the go.mod files.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# What a build depends on. The version and the time come from the commit, so the same commit gives
# the same bytes. Outside a git checkout they are "unknown" and 1970.
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)

PROGRAMS := $(patsubst cmd/%/main.go,%,$(wildcard cmd/*/main.go))
# Those that run on nodes, as pods. Others are for people.
AGENTS   := $(foreach p,$(PROGRAMS),$(if $(wildcard deploy/$p),$p))
ARCHES   := amd64 arm64
TAG      ?= dev
PLATFORM ?= hgx-h100
FUZZTIME ?= 10s
BENCH    ?= .
# More for go test, such as -v, which shows what was skipped.
TESTFLAGS ?=

# Static (no libc in the image), without paths of the machine that built it. grpcnotrace leaves out
# a debugging web page of the gRPC library and the template engine that comes with it.
TAGS     := grpcnotrace
GO_BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags=$(TAGS)
LDFLAGS  := -s -w -buildid=

# What is linted. Modules that only pin something have no code.
MODULES := $(patsubst %/go.mod,%,$(wildcard go.mod test/go.mod test/consumers/go.mod test/docs/go.mod test/kernel/go.mod test/chart/go.mod tools/go.mod))
MODULES := $(subst go.mod,.,$(MODULES))

.PHONY: help
help: ## Show this list
	@awk -F':.*## ' '/^[a-z0-9.-]+:.*## /{printf "  \033[1m%-17s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: $(PROGRAMS:%=bin/%) ## Build the programs for this machine, into bin/

# Always handed to go, which knows better than make what is out of date.
.PHONY: always
bin/%: always
	$(GO_BUILD) -ldflags="$(LDFLAGS) -X main.version=$(VERSION)" -o $@ ./cmd/$(@F)

# Whose kubectl-device is in a release, beside that for Linux.
SYSTEMS  ?= $(foreach system,darwin windows,$(ARCHES:%=$(system)-%))

.PHONY: portable
portable: ## Build kubectl-device for the systems that people have, into dist/SYSTEM
	@for system in $(SYSTEMS); do echo "build kubectl-device for $$system"; mkdir -p dist/$$system; \
	  GOOS=$${system%-*} GOARCH=$${system#*-} $(GO_BUILD) -ldflags="$(LDFLAGS) -X main.version=$(VERSION)" \
	    -o dist/$$system/ ./cmd/kubectl-device; done

# ---- tests

.PHONY: test
test: test-unit test-consumers test-race test-kubelet test-kubelet-1.34 test-tools test-chart test-docs ## Run every test that needs no root

.PHONY: test-unit
test-unit: ## Run the tests of the main module
	go vet ./...
	go test $(TESTFLAGS) ./...

.PHONY: test-race
test-race: ## Run them again under the race detector
	CGO_ENABLED=1 go test -race ./...

.PHONY: test-consumers
test-consumers: ## Read our CDI specs with the libraries that Kata is built with
	go -C test/consumers vet ./...
	go -C test/consumers test ./...

# Vet, which go test runs as well, goes through all of Kubernetes anew, for as long as it takes to
# compile it. That is done once, by the linters, which have vet among them.
.PHONY: test-kubelet
test-kubelet: ## Run the tests against kubelet's own device manager
	go -C test test -vet=off ./cluster/told ./demo/... ./e2e/... ./harness/... ./kubelet/...
	@go -C test test -vet=off -v -run='^TestVersion$$' ./kubelet | grep -o 'kubelet of .*'

# The second module file has the version; the tag chooses the file in test/kubelet that fits.
KUBERNETES_134 := -vet=off -modfile=kubernetes-1.34.mod -tags=kubernetes134

.PHONY: test-kubelet-1.34
test-kubelet-1.34: ## Run the same tests against kubelet 1.34's device manager
	go -C test test $(KUBERNETES_134) ./kubelet ./e2e
	@go -C test test $(KUBERNETES_134) -v -run='^TestVersion$$' ./kubelet | grep -o 'kubelet of .*'

.PHONY: e2e-node
e2e-node: ## Run the plugin on a real kubelet and containerd (root, runc, busybox-static, iproute2)
	go -C test test -vet=off -tags=node -count=1 -v -timeout=10m ./peer
	go -C test test -vet=off -tags=node -count=1 -v -parallel=4 -timeout=40m ./node

.PHONY: e2e-dra
e2e-dra: ## Run the DRA driver against the API server, the scheduler and kubelet's DRA manager
	go -C test test -vet=off -count=1 -v -timeout=30m ./plane ./policy ./dra

.PHONY: e2e-cli
e2e-cli: ## Run kubectl-device against the API server and the scheduler
	go -C test test -vet=off -count=1 -v -timeout=30m ./live ./explain

.PHONY: e2e-exporter
e2e-exporter: ## Run the exporter with kubelet's device manager, Prometheus and Chromium (Debian's prometheus, chromium)
	go -C test test -vet=off -count=1 -v -timeout=20m ./exporter

.PHONY: e2e-cluster
e2e-cluster: dist/kata-device-plugin.oci.tar dist/kata-device-plugin.yaml
e2e-cluster: dist/device-exporter.oci.tar dist/device-exporter.yaml dist/nic-device-plugin.oci.tar
e2e-cluster: dist/kata-dra-driver.oci.tar dist/kata-dra-driver.yaml ## Run images and manifests on a whole cluster (needs what e2e-node needs)
	@go -C tools run ./manifests $(CURDIR)/test/cluster/overlay > dist/e2e-cluster.yaml
	@go -C tools run ./manifests $(CURDIR)/test/cluster/overlay-dra > dist/e2e-cluster-dra.yaml
	@go -C tools run ./manifests $(CURDIR)/test/cluster/overlay-exporter > dist/e2e-cluster-exporter.yaml
	@go -C tools run ./manifests $(CURDIR)/test/cluster/overlay-nic > dist/e2e-cluster-nic.yaml
	@go -C tools run ./manifests $(CURDIR)/test/cluster/overlay-exporter-nics > dist/e2e-cluster-exporter-nics.yaml
	go -C test test -vet=off -tags=node -count=1 -v -timeout=40m ./cluster

.PHONY: peers
peers: ## Build kubelet, containerd and a control plane into the user's cache
	go -C test run ./peer/cmd/prepare

.PHONY: kernel
kernel: ## Fetch and build the kernel of e2e-kernel into the user's cache
	go -C test/kernel run ./prepare

.PHONY: e2e-kernel
e2e-kernel: ## Run the plugin on a real Linux kernel under QEMU, and compare the simulator with it
	go -C test/kernel vet ./...
	go -C test/kernel test -v -count=1 -timeout=60m .

.PHONY: test-tools
test-tools: ## Run the tests of the image and manifest tools
	go -C tools vet ./...
	go -C tools test ./...

# Without vet, as test-kubelet.
.PHONY: test-chart
test-chart: ## Render the Helm chart, and compare it with the kustomize bases and with its rules
	go -C test/chart test -vet=off . ./cmd/...

.PHONY: test-docs
test-docs: ## Hold the documents against kubectl's flags and against what the demo prints
	go -C test/docs test -vet=off -count=1 ./...

.PHONY: e2e-chart
e2e-chart: $(AGENTS:%=dist/%.oci.tar) bin/kubectl-device ## Install, upgrade, migrate and remove the chart on a cluster (needs what e2e-node needs)
	go -C test/chart test -vet=off -tags=node -count=1 -v -timeout=20m ./live

.PHONY: cover
cover: ## Measure which statements the tests reach, into dist/cover.html
	@mkdir -p dist
	go test -coverpkg=./internal/...,./cmd/... -coverprofile=dist/cover.out ./...
	go tool cover -html=dist/cover.out -o dist/cover.html
	@go tool cover -func=dist/cover.out | tail -1

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (10s)
	@grep -rl --include='*_test.go' '^func Fuzz' internal | sort | while read -r file; do \
	  for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$$file"); do \
	    echo "fuzz $$target in $$(dirname "$$file"), $(FUZZTIME)"; \
	    go test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(FUZZTIME) "./$$(dirname "$$file")"; \
	  done; \
	done

.PHONY: bench
bench: ## Measure what docs/performance.md reports
	go test -run='^$$' -bench='$(BENCH)' -benchtime=2s ./internal/host ./internal/nic
	go test -run='^$$' -bench='$(BENCH)' -benchtime=1000x ./internal/agent | grep -v level=
	go -C test test -run='^$$' -bench='$(BENCH)' -benchtime=1x -timeout=20m ./e2e
	@$(MAKE) --no-print-directory build && ls -l $(PROGRAMS:%=bin/%)

.PHONY: demo
demo: ## Run the plugin against a simulated node and kubelet's device manager (PLATFORM=hgx-h100)
	go -C test run ./demo -platform=$(PLATFORM)

# ---- checks

.PHONY: lint
lint: ## Check the format and run the linters
	@unformatted=$$(gofmt -l cmd internal test tools); \
	  if [ -n "$$unformatted" ]; then echo "not formatted with gofmt:"; echo "$$unformatted"; exit 1; fi
	go -C tools/lint build -o ../../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@status=0; for module in $(MODULES); do echo "lint $$module"; \
	  (cd "$$module" && $(CURDIR)/bin/golangci-lint run --config=$(CURDIR)/.golangci.yml ./...) || status=1; done; exit $$status

.PHONY: vuln
vuln: ## Look the linked code up in the Go vulnerability database
	@./tools/vuln.sh

.PHONY: tidy
tidy: ## Check that the go.mod files list what is used and nothing else
	@status=0; for module in . test/consumers test/docs test/kernel test/chart tools tools/probe; do echo "tidy $$module"; \
	  go -C "$$module" mod tidy -diff || status=1; done; exit $$status

# ---- what is shipped

# Where the sources are published, for a label of the images, and where the archives of a release are,
# for its krew manifest. Neither is said without them.
SOURCE   ?=
BASE     ?=

.PHONY: images
images: dist/images.oci.tar ## Write the images (amd64, arm64) to dist/PROGRAM.oci.tar, and all to dist/images.oci.tar

.PHONY: image
image: images

dist/images.oci.tar: $(PROGRAMS:%=dist/%.oci.tar)
	@go -C tools run ./image -merge -o $(CURDIR)/$@ $(^:%=$(CURDIR)/%)

# What each image says of itself. A program without a line here gets no image.
dist/kata-device-plugin.oci.tar: DESCRIPTION := Announces VFIO-bound GPUs and NVSwitches to kubelet, for Kata VMs
dist/device-exporter.oci.tar: DESCRIPTION := Tells Prometheus and people which pod has which device, and how the devices are
dist/kata-dra-driver.oci.tar: DESCRIPTION := Offers VFIO-bound devices to claims of Dynamic Resource Allocation, for Kata VMs
dist/kubectl-device.oci.tar: DESCRIPTION := Shows passthrough devices, and why a pod does not get one
dist/nic-device-plugin.oci.tar: DESCRIPTION := Announces NICs, SR-IOV VFs and shared RDMA devices to kubelet, as a file says

# Only those that kubelet asks for their health have the probe.
dist/%.oci.tar: probe
	@for arch in $(ARCHES); do \
	  echo "build $* for linux/$$arch"; \
	  GOOS=linux GOARCH=$$arch $(GO_BUILD) -ldflags="$(LDFLAGS) -X main.version=$(VERSION)" -o dist/linux-$$arch/$* ./cmd/$*; \
	done
	@go -C tools run ./image -o $(CURDIR)/$@ -name $* -tag '$(TAG)' -version '$(VERSION)' -revision '$(REVISION)' \
	  -source '$(SOURCE)' -modules "$$(go env GOMODCACHE)" -goroot "$$(go env GOROOT)" -repository '$(CURDIR)' -description '$(or $(DESCRIPTION),$(error $@ has no DESCRIPTION))' \
	  $(foreach arch,$(ARCHES),-program $(arch)=$(CURDIR)/dist/linux-$(arch)/$* \
	    $(if $(filter $*,$(AGENTS)),-probe $(arch)=$(CURDIR)/dist/linux-$(arch)/grpc_health_probe))

# The health probe is the same in every image.
.PHONY: probe
probe:
	@for arch in $(ARCHES); do \
	  echo "build grpc_health_probe for linux/$$arch"; \
	  GOOS=linux GOARCH=$$arch CGO_ENABLED=0 go -C tools/probe build -trimpath -buildvcs=false -tags=$(TAGS) -ldflags="$(LDFLAGS)" \
	    -o $(CURDIR)/dist/linux-$$arch/grpc_health_probe github.com/grpc-ecosystem/grpc-health-probe; \
	done

.PHONY: reproducible
reproducible: images portable ## Build images and kubectl-device once more in another place, without caches, and compare
	@VERSION='$(VERSION)' REVISION='$(REVISION)' TAG='$(TAG)' SYSTEMS='$(SYSTEMS)' ./tools/reproduce.sh $(PROGRAMS:%=dist/%.oci.tar) \
	  dist/images.oci.tar $(foreach system,$(SYSTEMS),dist/$(system)/kubectl-device$(if $(filter windows-%,$(system)),.exe))

.PHONY: container
container: images ## Run the images as the manifests do, in a containerd of its own (needs root)
	@./tools/container.sh

.PHONY: manifests
manifests: $(AGENTS:%=dist/%.yaml) ## Render the manifests to dist/PROGRAM.yaml, checked against the Kubernetes types

dist/%.yaml: always
	@mkdir -p dist
	@go -C tools run ./manifests $(CURDIR)/deploy/$* > $@
	@echo $@

.PHONY: man
man: bin/kubectl-device ## Write the manual pages of kubectl-device to dist/man
	@rm -rf dist/man && bin/kubectl-device man-pages dist/man && ls dist/man

# kubectl asks kubectl_complete-device, which has to be in the PATH, to complete "kubectl device".
.PHONY: completions
completions: bin/kubectl-device ## Write what completes kubectl-device in shells to dist/completions
	@rm -rf dist/completions && mkdir -p dist/completions
	@for shell in bash zsh fish powershell; do bin/kubectl-device completion $$shell > dist/completions/kubectl-device.$$shell; done
	@printf '#!/bin/sh\nexec kubectl-device __complete "$$@"\n' > dist/completions/kubectl_complete-device
	@chmod 0755 dist/completions/kubectl_complete-device && ls dist/completions

.PHONY: chart-docs
chart-docs: ## Write what is derived in the Helm chart: schema, README, files shared with deploy/
	go -C test/chart run ./cmd/generate $(CURDIR)

# What is in a release, and how to make one: docs/release.md. The version is looked at first, since the
# rest takes minutes.
.PHONY: release
release: ## Make a release of a tagged commit in dist/release, without a network (or VERSION=v1.2.3 by hand)
	@go -C tools run ./release -check -version '$(VERSION)'
	@$(MAKE) --no-print-directory images manifests man completions portable TAG='$(VERSION)' VERSION='$(VERSION)'
	@rm -rf dist/release
	@go -C tools run ./release -version '$(VERSION)' -base '$(BASE)' -modules "$$(go env GOMODCACHE)" \
	  -goroot "$$(go env GOROOT)" $(SYSTEMS:%=-system %) -repository $(CURDIR) -in $(CURDIR)/dist -out $(CURDIR)/dist/release
	@cd dist/release && sha256sum --check --quiet SHA256SUMS && cat SHA256SUMS

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin dist
