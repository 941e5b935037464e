package arch

import (
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/golden"
)

const (
	module = "kata-device-plugin"
	// buildTags are those of the Makefile's build: without them, gRPC's debugging page brings the
	// template engine, whose use of reflection keeps the linker from leaving anything out.
	buildTags = "grpcnotrace"
)

// forbidden is something that a program must not contain. A package stands for all below it.
type forbidden struct{ what, why string }

// program says what a program must not contain beyond what none should, and what it may all
// the same, with the reason for each.
type program struct{ mustNot, may []forbidden }

func programs() map[string]program {
	return map[string]program{
		"kata-device-plugin": {mustNot: []forbidden{
			{"k8s.io/client-go", "it does not talk to the API server"},
			{"k8s.io/apimachinery", "it comes with the API server's types"},
			{"k8s.io/api", "it does not talk to the API server"},
			{"flag", "it takes no arguments"},
			{"github.com/spf13", "it takes no arguments and no configuration"},
			{"github.com/prometheus", "metrics are the exporter's: they need a TCP port"},
			{"go.opentelemetry.io", "it reports to nobody"},
			{"github.com/vishvananda", "it asks the kernel nothing of the network, so it needs no netlink"},
			{"go.yaml.in/yaml/v4", "it reads no configuration"},
			{module + "/internal/nic", "what it declares is a table that is compiled in"},
			{module + "/internal/nicconfig", "it reads no configuration"},
			{module + "/internal/dradriver", "who uses it need not know what DRA is"},
			{module + "/internal/web", "it opens no port"},
		}},
		// The package flag is not here: two plugins that people have are told where their file is,
		// and this one takes their place.
		"nic-device-plugin": {mustNot: []forbidden{
			{"k8s.io/client-go", "it does not talk to the API server: its configuration is a mounted file"},
			{"k8s.io/apimachinery", "it comes with the API server's types"},
			{"k8s.io/api", "it does not talk to the API server"},
			{"github.com/spf13", "its few flags are the standard library's"},
			{"github.com/prometheus", "metrics are the exporter's: they need a TCP port"},
			{"go.opentelemetry.io", "it reports to nobody"},
			{module + "/internal/dradriver", "who uses it need not know what DRA is"},
			{module + "/internal/web", "it opens no port"},
		}},
		"device-exporter": {mustNot: []forbidden{
			{"k8s.io/client-go", "it does not talk to the API server"},
			{"k8s.io/apimachinery", "it comes with the API server's types"},
			{"k8s.io/api", "of a pod it reads the name and the UID, without the API's types"},
			{"k8s.io/dynamic-resource-allocation", "it offers nothing"},
			{"github.com/spf13", "its few flags are the standard library's"},
			{module + "/internal/agent", "it announces nothing"},
			{module + "/internal/prepare", "it prepares nothing"},
			{module + "/internal/dra", "what a device is called the records of claims say"},
			{module + "/internal/dradriver", "it offers nothing"},
			{module + "/internal/nicplugin", "it announces nothing"},
			{module + "/internal/cli", "people have kubectl-device"},
		}, may: []forbidden{
			{"expvar", "Prometheus's client has a collector of it, which nobody registers; its page is on a server that there is not"},
			{"text/template", "the exporter toolkit has a page of links, which is not served"},
			{"golang.org/x/net/trace", "the exporter toolkit's listener could write there, and is not told to; its page is on a server that there is not"},
			{"net/http.(*Server).Serve", "Prometheus and browsers ask over HTTP"},
		}},
		"kata-dra-driver": {mustNot: []forbidden{
			{module + "/internal/kubelet", "it is no device plugin"},
			{"k8s.io/kubelet/pkg/apis/deviceplugin", "it is no device plugin"},
			{module + "/internal/agent", "its devices are published, not announced"},
			{module + "/internal/nic", "it offers what is bound to VFIO, whatever a file selects"},
			{module + "/internal/nicconfig", "its configuration is flags, classes and claims"},
			{module + "/internal/nicplugin", "it is no device plugin"},
			{"github.com/vishvananda", "it asks the kernel nothing of the network, so it needs no netlink"},
			{"k8s.io/kubernetes", "a driver needs what Kubernetes publishes for drivers, not Kubernetes"},
			{"k8s.io/apiserver", "it asks the API server, it is none"},
			{"github.com/spf13/cobra", "its few flags are the standard library's"},
		}, may: []forbidden{
			{"os/exec", "client-go starts credential plugins that a kubeconfig names; that of a pod names none"},
			{"expvar", "Prometheus's client has a collector of it, which nobody registers; its page is on a server that there is not"},
			{"text/template", "the exporter toolkit has a page of links, which is not served"},
			{"golang.org/x/net/trace", "the exporter toolkit's listener could write there, and is not told to; its page is on a server that there is not"},
			{"os.StartProcess", "client-go again"},
			{"syscall.forkExec", "client-go again"},
			{"net/http.(*Server).Serve", "Prometheus asks over HTTP"},
			{"net/http.(*Client).do", "the API server speaks HTTP"},
			{"net/http.(*Transport).RoundTrip", "the API server speaks HTTP"},
		}},
		"kubectl-device": {mustNot: []forbidden{
			{module + "/internal/agent", "it announces nothing"},
			{module + "/internal/dradriver", "it publishes nothing"},
			{module + "/internal/prepare", "it prepares nothing"},
			{module + "/internal/web", "it opens no port"},
			{"k8s.io/kubernetes", "it renders what Kubernetes publishes"},
		}, may: []forbidden{
			{"expvar", "the library that evaluates selectors of claims counts with Prometheus's client, whose page is on a server that there is not"},
			{module + "/internal/sim", "people run commands on simulated nodes"},
			{"os/exec", "sim runs a command, and client-go starts credential plugins that a kubeconfig names"},
			{"os.StartProcess", "both again"},
			{"syscall.forkExec", "both again"},
			{"syscall.Exec", "sim becomes the command, in a mount namespace"},
			{"text/template", "cobra writes its help with it"},
			{"net/http.(*Client).do", "the API server speaks HTTP"},
			{"net/http.(*Transport).RoundTrip", "the API server speaks HTTP"},
		}},
	}
}

// forbiddenEverywhere is what no program may link, unless its row says so. net/http is not here, although no program
// needs it: gRPC's transport imports it for names of headers. See forbiddenFunctions.
func forbiddenEverywhere() []forbidden {
	return []forbidden{
		{"os/exec", "no program starts another"},
		{"plugin", "no program loads code"},
		{"runtime/cgo", "the programs are static"},
		{"testing", "test code is not shipped"},
		{module + "/internal/sim", "the simulated node is for tests"},
		{module + "/internal/arch", "tests are not shipped"},
		{"net/http/pprof", "a debugging port is a port"},
		{"net/rpc", "gRPC is the only protocol"},
		{"expvar", "it adds a page to every HTTP server"},
		{"text/template", "its reflection keeps the linker from leaving anything out; build with the tag " + buildTags},
		{"golang.org/x/net/trace", "a debugging page; build with the tag " + buildTags},
	}
}

// forbiddenFunctions are what the linker must have left out of every program whose row does not
// say otherwise: then nothing in it can call them, whatever is imported.
func forbiddenFunctions() []forbidden {
	return []forbidden{
		{"os.StartProcess", "no program starts another"},
		{"syscall.forkExec", "no program starts another"},
		{"syscall.Exec", "no program becomes another"},
		{"net/http.(*Server).Serve", "no program serves HTTP"},
		{"net/http.(*Client).do", "no program speaks HTTP"},
		{"net/http.(*Transport).RoundTrip", "no program speaks HTTP"},
	}
}

func TestProgramsDoNotLink(t *testing.T) {
	for _, program := range commands(t) {
		t.Run(program, func(t *testing.T) {
			rules, ok := programs()[program]
			if !ok {
				t.Fatalf("cmd/%s has no row in programs(): add one that says what it must not link, and why", program)
			}
			for _, pkg := range linked(t, program) {
				f, bad := forbids(slices.Concat(rules.mustNot, forbiddenEverywhere()), pkg.path)
				if _, excepted := forbids(rules.may, pkg.path); bad && !excepted {
					t.Errorf("links %s, but %s", pkg.path, f.why)
				}
			}
		})
	}
}

func TestForbiddenPackagesAreNoticed(t *testing.T) {
	rules := []forbidden{{"k8s.io/api", "x"}, {"plugin", "x"}}
	for pkg, want := range map[string]bool{
		"k8s.io/api": true, "k8s.io/api/core/v1": true, "k8s.io/apimachinery/pkg/types": false, "plugin": true, "plugins": false,
	} {
		if _, got := forbids(rules, pkg); got != want {
			t.Errorf("%s is forbidden: %v, want %v", pkg, got, want)
		}
	}
}

func TestDependencyLists(t *testing.T) {
	for _, program := range commands(t) {
		t.Run(program, func(t *testing.T) {
			golden.Assert(t, dependencyList(program, linked(t, program)), program+".deps")
		})
	}
}

func TestProgramsDoNotContain(t *testing.T) {
	for _, program := range commands(t) {
		t.Run(program, func(t *testing.T) {
			functions := functionsOf(t, "./cmd/"+program)
			if len(functions) < 1000 || !functions["main.main"] {
				t.Fatalf("read %d functions, and main.main %v: this is not a program's symbol table", len(functions), functions["main.main"])
			}
			may := programs()[program].may
			for _, f := range forbiddenFunctions() {
				if _, excepted := forbids(may, f.what); functions[f.what] && !excepted {
					t.Errorf("contains %s, but %s", f.what, f.why)
				}
			}
			// An exception that is not needed any more would hide the next one.
			for _, f := range may {
				packages := linked(t, program)
				if !functions[f.what] && !slices.ContainsFunc(packages, func(p linkedPackage) bool { return p.path == f.what }) {
					t.Errorf("may contain %s, and does not", f.what)
				}
			}
		})
	}
}

// The names of the functions must be right, or the test above passes for ever.
func TestForbiddenFunctionsExist(t *testing.T) {
	functions := functionsOf(t, "./internal/arch/testdata/everything")
	for _, f := range forbiddenFunctions() {
		if !functions[f.what] {
			t.Errorf("a program that does everything does not contain %s: is that its name?", f.what)
		}
	}
}

func TestMakefileBuildsWithTheTags(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(repository(t), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if name, value, ok := strings.Cut(line, ":="); ok && strings.TrimSpace(name) == "TAGS" {
			if got := strings.TrimSpace(value); got != buildTags {
				t.Errorf("the Makefile builds with the tags %q, these tests look at %q", got, buildTags)
			}
			return
		}
	}
	t.Error("the Makefile has no line TAGS :=")
}

// linkedPackage is one package of a program. Of the standard library's, module is empty.
type linkedPackage struct{ path, module string }

// linked lists every package of a program, for the platforms that the image is built for.
func linked(t *testing.T, program string) []linkedPackage {
	t.Helper()
	all := map[linkedPackage]bool{}
	for _, arch := range []string{"amd64", "arm64"} {
		const format = "{{.ImportPath}} {{with .Module}}{{.Path}}{{end}}"
		out := golang(t, arch, "list", "-deps", "-tags="+buildTags, "-f="+format, "./cmd/"+program)
		for line := range strings.Lines(out) {
			path, mod, _ := strings.Cut(strings.TrimSpace(line), " ")
			all[linkedPackage{path, mod}] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b linkedPackage) int {
		return strings.Compare(a.module+" "+a.path, b.module+" "+b.path)
	})
}

// dependencyList renders what a program links of other people's modules.
func dependencyList(program string, packages []linkedPackage) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# What %s links from outside the standard library and this module.\n", program)
	fmt.Fprintf(&b, "# Written by: go test ./internal/arch -update\n")
	last := ""
	for _, p := range packages {
		if p.module == "" || p.module == module {
			continue
		}
		if p.module != last {
			fmt.Fprintf(&b, "\n%s\n", p.module)
			last = p.module
		}
		fmt.Fprintf(&b, "    %s\n", p.path)
	}
	return b.String()
}

// functionsOf builds a program as the Makefile does, but with its symbols.
func functionsOf(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	golang(t, "amd64", "build", "-trimpath", "-tags="+buildTags, "-o="+file, pkg)
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string]bool{}
	for _, s := range table {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			functions[s.Name] = true
		}
	}
	return functions
}

func forbids(rules []forbidden, pkg string) (forbidden, bool) {
	for _, f := range rules {
		if pkg == f.what || strings.HasPrefix(pkg, f.what+"/") {
			return f, true
		}
	}
	return forbidden{}, false
}

// golang runs the go command in the main module for a platform and returns what it prints.
func golang(t *testing.T, arch string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Dir = repository(t)
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=-buildvcs=false")
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// commands lists the programs. That there are none is a mistake: these tests would check nothing.
func commands(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(repository(t), "cmd"))
	if err != nil {
		t.Fatalf("list the programs: %v", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		t.Fatal("there is no program below cmd/")
	}
	return names
}
