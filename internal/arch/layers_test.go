package arch

import (
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The floors of the house, from the ground up. A room knows rooms on lower floors, never one
// on its own floor or above: siblings are put together by whoever stands above them.
const (
	ground        = iota // knows no other room
	facts                // what there is: the node, the configuration, in types of their own
	faces                // work on the facts: decide what they mean, tell somebody, add to them
	pools                // make what a face asks for, out of a configuration
	agents               // put together what all programs share
	plugins              // put one program together
	people               // put the program for people together
	commandsFloor        // cmd: constants and one call
)

// room is a package below internal. It may be imported by rooms of higher floors.
type room struct {
	floor int
	what  string
	// testOnly rooms are imported by tests alone, and may import what they want.
	testOnly bool
}

// rooms is the plan of the house. A package that is not here is refused.
func rooms() map[string]room {
	return map[string]room{
		"pci":                {floor: ground, what: "addresses, classes and paths as the kernel spells them"},
		"pciids":             {floor: facts, what: "what PCI hardware is called"},
		"sysfs":              {floor: ground, what: "reading attributes and directories without leaving the tree"},
		"finding":            {floor: ground, what: "the catalogue of what can be wrong, and what to do"},
		"unixsock":           {floor: ground, what: "unix sockets with peer checks"},
		"placement":          {floor: ground, what: "which devices are closest together"},
		"nodelock":           {floor: ground, what: "one owner of a resource on a node"},
		"watch":              {floor: ground, what: "look again: inotify, debounced"},
		"uevent":             {floor: facts, what: "look again: what the kernel announces of devices"},
		"confine":            {floor: ground, what: "Landlock, and a filter of sockets"},
		"host":               {floor: facts, what: "one look at the node: the snapshot"},
		"devfs":              {floor: faces, what: "what is in /dev, without opening it"},
		"nicconfig":          {floor: facts, what: "what the NIC plugin's file declares, read and checked"},
		"devinfo":            {floor: facts, what: "what network plugins are told of a device, in files"},
		"podresources":       {floor: ground, what: "kubelet's word on which container has which device"},
		"exit":               {floor: ground, what: "the codes that programs exit with"},
		"wholefile":          {floor: ground, what: "files that are whole or not there"},
		"draname":            {floor: facts, what: "what the DRA driver and its devices are called"},
		"claim":              {floor: facts, what: "which claim holds which hardware, on disk"},
		"deviceconfig":       {floor: ground, what: "what a claim may say of its devices"},
		"web":                {floor: ground, what: "HTTP for Prometheus"},
		"journal":            {floor: facts, what: "a line in the log for each change"},
		"hostnet":            {floor: faces, what: "netlink: what a snapshot lacks of the host's own network"},
		"declare":            {floor: faces, what: "which facts become which resource"},
		"lookout":            {floor: faces, what: "look at the node whenever there may be something new"},
		"cdi":                {floor: faces, what: "CDI specs on the host"},
		"kubelet":            {floor: faces, what: "the device plugin API"},
		"health":             {floor: faces, what: "readiness over gRPC"},
		"nic":                {floor: pools, what: "the pools of the NIC plugin's file as rules"},
		"dra":                {floor: pools, what: "which facts become which DRA device"},
		"prepare":            {floor: agents, what: "devices made ready for a claim, and given up"},
		"dradriver":          {floor: plugins, what: "the DRA driver: look, publish, prepare"},
		"selector":           {floor: facts, what: "which published devices a selector takes"},
		"manifest":           {floor: ground, what: "Kubernetes objects in files, and where each value stands"},
		"live":               {floor: ground, what: "Kubernetes objects in a cluster"},
		"prose":              {floor: ground, what: "words for people, in lines"},
		"render":             {floor: faces, what: "pods, written for either way to get devices"},
		"capture":            {floor: pools, what: "a node in a file"},
		"inventory":          {floor: pools, what: "what a node has, for people"},
		"nodeconfig":         {floor: facts, what: "what kubelet, runtimes and Kata are told in files of a node"},
		"cdispec":            {floor: faces, what: "CDI specs as runtimes judge them, and where each value stands"},
		"check":              {floor: agents, what: "what disagrees between objects"},
		"collect":            {floor: agents, what: "this node, put into a file"},
		"picture":            {floor: agents, what: "an inventory as a drawing"},
		"report":             {floor: plugins, what: "what checks found, written for people and machines"},
		"nodestate":          {floor: pools, what: "what all sources of a node say, joined"},
		"nodeview":           {floor: agents, what: "one look at all sources of a node, for people"},
		"exporter":           {floor: plugins, what: "the exporter: look, join, tell"},
		"sim/rootedexporter": {floor: agents, what: "the exporter on a simulated node", testOnly: true},
		"exporter/gather":    {floor: agents, what: "the sources of a node, read and kept"},
		"exporter/podsapi":   {floor: ground, what: "kubelet's word on which pods there are"},
		"preflight":          {floor: plugins, what: "whether a cluster is ready for a way to devices, question by question"},
		"explain":            {floor: plugins, what: "why a pod or a claim waits, step by step"},
		"holders":            {floor: plugins, what: "who has which device, for people"},
		"cli":                {floor: people, what: "kubectl-device: its commands and flags"},
		"agent":              {floor: agents, what: "look, declare, make resolvable, announce"},
		"nicplugin":          {floor: plugins, what: "the NIC plugin: its rules, sources and flags, and the agent"},
		"sim":                {floor: agents, what: "the simulated node, for tests and for people"},
		"witness":            {floor: agents, what: "a kubelet that holds messages against the invariants", testOnly: true},
		"sim/rooted":         {floor: agents, what: "the program with its roots below a simulated node", testOnly: true},
		"sim/simtest":        {floor: agents, what: "simulated nodes for tests", testOnly: true},
		"sim/rooteddra":      {floor: agents, what: "the DRA driver on a simulated node", testOnly: true},
		"sim/rootednic":      {floor: agents, what: "the NIC plugin on a simulated node", testOnly: true},
		"arch":               {floor: agents, what: "these tests", testOnly: true},
		"docs":               {floor: agents, what: "the documents, held against what is so", testOnly: true},
	}
}

// keepers says which rooms may speak to a library: everything about its subject is then in
// one place, and the library can be replaced there.
func keepers() map[string][]string {
	return map[string][]string{
		"tags.cncf.io/container-device-interface": {"cdi"},
		"github.com/google/renameio":              {"wholefile"},
		"github.com/prometheus/client_golang":     {"dradriver", "exporter"},
		"github.com/prometheus/common":            {"exporter"},
		"github.com/prometheus/exporter-toolkit":  {"web"},
		"github.com/go-logr/logr":                 {"dradriver"},
		"k8s.io/klog":                             {"dradriver"},
		"k8s.io/client-go":                        {"dradriver", "live"},
		"k8s.io/api":                              {"dra", "dradriver", "prepare", "selector"},
		"k8s.io/apimachinery":                     {"dra", "dradriver", "prepare", "live"},
		"k8s.io/dynamic-resource-allocation":      {"dra", "dradriver", "prepare", "selector"},
		"sigs.k8s.io/json":                        {"deviceconfig"},
		"github.com/vishvananda/netlink":          {"hostnet"},
		"github.com/fsnotify/fsnotify":            {"watch"},
		"github.com/landlock-lsm/go-landlock":     {"confine"},
		"k8s.io/kubelet":                          {"exporter/podsapi", "kubelet", "podresources", "collect"},
		"google.golang.org/grpc":                  {"dradriver", "exporter/podsapi", "kubelet", "health", "unixsock", "podresources"},
		"go.yaml.in/yaml":                         {"nicconfig", "manifest", "render"},
		"github.com/pelletier/go-toml":            {"nodeconfig"},
		"github.com/spf13":                        {"cli", "live"},
	}
}

func TestImportsPointDownwards(t *testing.T) {
	plan := rooms()
	for dir, imports := range importsBelow(t, "internal") {
		name := strings.TrimPrefix(dir, "internal/")
		self, ok := plan[name]
		if !ok {
			t.Errorf("%s has no row in rooms(): add one that says what it is for and on which floor it is", dir)
			continue
		}
		for _, imported := range imports {
			if complaint := mayImport(plan, self, name, imported); complaint != "" {
				t.Errorf("%s imports %s, but %s", dir, imported, complaint)
			}
		}
	}
	commands(t) // there are some
	for dir, imports := range importsBelow(t, "cmd") {
		for _, imported := range imports {
			if complaint := mayImport(plan, room{floor: commandsFloor}, dir, imported); complaint != "" {
				t.Errorf("%s imports %s, but %s", dir, imported, complaint)
			}
		}
	}
}

// mayImport says what is wrong with an import, or nothing.
func mayImport(plan map[string]room, self room, name, imported string) string {
	if other, ok := strings.CutPrefix(imported, module+"/internal/"); ok {
		to, known := plan[other]
		switch {
		case !known:
			return "that has no row in rooms()"
		case self.testOnly:
			return ""
		case to.testOnly:
			return "that is for tests"
		case to.floor >= self.floor:
			return "that is not on a lower floor: " + to.what
		}
		return ""
	}
	if self.testOnly {
		return ""
	}
	for library, allowed := range keepers() {
		if (imported == library || strings.HasPrefix(imported, library+"/")) && !slices.Contains(allowed, name) {
			return "only " + strings.Join(allowed, ", ") + " may: see keepers()"
		}
	}
	return ""
}

func TestMayImport(t *testing.T) {
	plan := rooms()
	const in = module + "/internal/"
	for _, test := range []struct {
		name, imported string
		allowed        bool
	}{
		{"agent", in + "kubelet", true},
		{"kubelet", in + "agent", false},
		{"kubelet", in + "cdi", false},
		{"host", in + "pci", true},
		{"pci", in + "host", false},
		{"host", in + "sim", false},
		{"cli", in + "sim", true},
		{"cli", in + "sim/rooted", false},
		{"sim", in + "host", true},
		{"host", in + "attic", false},
		{"hostnet", in + "host", true},
		{"host", in + "hostnet", false},
		{"nic", in + "declare", true},
		{"declare", in + "nic", false},
		{"nicplugin", in + "agent", true},
		{"agent", in + "nicplugin", false},
		{"cdi", "tags.cncf.io/container-device-interface/pkg/cdi", true},
		{"agent", "tags.cncf.io/container-device-interface/pkg/cdi", false},
		{"agent", "google.golang.org/grpc", false},
		{"host", "golang.org/x/sys/unix", true},
		{"hostnet", "github.com/vishvananda/netlink/nl", true},
		{"nicplugin", "github.com/vishvananda/netlink/nl", false},
	} {
		if complaint := mayImport(plan, plan[test.name], test.name, test.imported); (complaint == "") != test.allowed {
			t.Errorf("%s imports %s: got complaint %q, want allowed %v", test.name, test.imported, complaint, test.allowed)
		}
	}
}

// importsBelow returns what every package below a directory imports outside its tests.
func importsBelow(t *testing.T, top string) map[string][]string {
	t.Helper()
	root := repository(t)
	all := map[string][]string{}
	for _, file := range goFiles(t, filepath.Join(root, top)) {
		rel, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		dir := path.Dir(filepath.ToSlash(rel))
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		imports := all[dir]
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(imports, imported) {
				imports = append(imports, imported)
			}
		}
		all[dir] = imports
	}
	return all
}

// goFiles lists the Go files below a directory, without what is built or hidden.
func goFiles(t *testing.T, top string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(top, func(file string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && file != top && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" || name == "dist") {
			return filepath.SkipDir
		}
		if !entry.IsDir() && strings.HasSuffix(name, ".go") {
			files = append(files, file)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("list the Go files below %s: %v", top, err)
	}
	return files
}
