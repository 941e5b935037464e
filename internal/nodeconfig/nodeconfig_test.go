package nodeconfig_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"kata-device-plugin/internal/nodeconfig"
)

// tree has the files of pairs of a path on the host and a text.
func tree(pairs ...string) fstest.MapFS {
	t := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		t[strings.TrimPrefix(pairs[i], "/")] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return t
}

const containerd = "/etc/containerd/config.toml"

func TestReadRuntime(t *testing.T) {
	const kata = "[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.kata-qemu]\nruntime_type = 'io.containerd.kata-qemu.v2'\n" +
		"[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.kata-qemu.options]\nConfigPath = '/opt/k.toml'\n"
	both := tree(containerd, "[plugins.'io.containerd.cri.v1.runtime']\nenable_cdi = false\n", "/etc/crio/crio.conf",
		"[crio.runtime]\ncdi_spec_dirs = ['/a']\n")
	handler := nodeconfig.Handler{Name: "kata-qemu", Type: "io.containerd.kata-qemu.v2", Config: "/opt/k.toml"}
	for name, tt := range map[string]struct {
		tree fstest.MapFS
		runs string // which runtime
		want *nodeconfig.Runtime
		err  string // a part of it
	}{
		"containerd 1.7": {
			tree: tree(containerd, "version = 2\n[plugins.'io.containerd.grpc.v1.cri']\nenable_cdi = true\ncdi_spec_dirs = ['/etc/cdi']\n"+kata),
			want: &nodeconfig.Runtime{Name: "containerd", Files: []string{containerd}, CDI: new(true), Dirs: []string{"/etc/cdi"},
				Handlers: []nodeconfig.Handler{handler}},
		},
		"containerd 2": {
			tree: tree(containerd, "[plugins.'io.containerd.cri.v1.runtime']\nenable_cdi = false\n"),
			want: &nodeconfig.Runtime{Name: "containerd", Files: []string{containerd}, CDI: new(false)},
		},
		"nothing is said": {
			tree: tree(containerd, ""),
			want: &nodeconfig.Runtime{Name: "containerd", Files: []string{containerd}},
		},
		"imports, of which one is not where files are looked for": {
			tree: tree(containerd, "imports = ['/opt/kata/containerd/config.d/*.toml', 'conf.d/a.toml', '/srv/x.toml']\n",
				"/opt/kata/containerd/config.d/kata.toml", kata, "/etc/containerd/conf.d/b.toml", "not read",
				"/etc/containerd/conf.d/a.toml", "[plugins.'io.containerd.grpc.v1.cri']\nenable_cdi = true\n"),
			want: &nodeconfig.Runtime{Name: "containerd", CDI: new(true), Handlers: []nodeconfig.Handler{handler}, Elsewhere: []string{"/srv/x.toml"},
				Files: []string{containerd, "/opt/kata/containerd/config.d/kata.toml", "/etc/containerd/conf.d/a.toml"}},
		},
		"k3s": {
			tree: tree("/var/lib/rancher/k3s/agent/etc/containerd/config.toml", ""),
			want: &nodeconfig.Runtime{Name: "containerd", Files: []string{"/var/lib/rancher/k3s/agent/etc/containerd/config.toml"}},
		},
		"CRI-O, whose files go over each other": {
			tree: tree("/etc/crio/crio.conf", "[crio.runtime]\ncdi_spec_dirs = ['/a']\n", "/etc/crio/crio.conf.d/50-kata",
				"[crio.runtime]\ncdi_spec_dirs = ['/b']\n[crio.runtime.runtimes.kata]\nruntime_path = '/usr/bin/containerd-shim-kata-v2'\nruntime_type = 'vm'\nruntime_config_path = '/k.toml'\n"),
			want: &nodeconfig.Runtime{Name: "cri-o", Files: []string{"/etc/crio/crio.conf", "/etc/crio/crio.conf.d/50-kata"}, Dirs: []string{"/b"},
				Handlers: []nodeconfig.Handler{{Name: "kata", Type: "vm /usr/bin/containerd-shim-kata-v2", Config: "/k.toml"}}},
		},
		"of two, nobody says which one runs": {
			tree: both, want: &nodeconfig.Runtime{Name: "containerd", Files: []string{containerd}, CDI: new(false), Beside: "cri-o"},
		},
		"of two, CRI-O":      {tree: both, runs: "cri-o", want: &nodeconfig.Runtime{Name: "cri-o", Files: []string{"/etc/crio/crio.conf"}, Dirs: []string{"/a"}}},
		"of two, containerd": {tree: both, runs: "containerd", want: &nodeconfig.Runtime{Name: "containerd", Files: []string{containerd}, CDI: new(false)}},
		"of two, neither":    {tree: both, runs: "docker", err: "file does not exist"},
		"of CRI-O none":      {tree: tree(containerd, ""), runs: "cri-o", err: "open /etc/crio/crio.conf: file does not exist"},
		"what does not run is no TOML": {tree: tree(containerd, "=", "/etc/crio/crio.conf", ""), runs: "cri-o",
			want: &nodeconfig.Runtime{Name: "cri-o", Files: []string{"/etc/crio/crio.conf"}}},
		"neither": {tree: tree(), err: "file does not exist"},
		"no TOML": {tree: tree(containerd, "a = 1\nb = = 2\n"), err: "read /etc/containerd/config.toml: line 2, column 5: "},
		"another type": {
			tree: tree(containerd, "plugins = 3\nimports = 'x'\n"),
			want: &nodeconfig.Runtime{Name: "containerd", Files: []string{containerd}},
		},
		"an import that is no TOML": {
			tree: tree(containerd, "imports = ['conf.d/*.toml']\n", "/etc/containerd/conf.d/a.toml", "["), err: "read /etc/containerd/conf.d/a.toml: line 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := nodeconfig.ReadRuntime(tt.tree, tt.runs)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %q in it", err, tt.err)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
	if _, err := nodeconfig.ReadRuntime(tree(), ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestRuntimeName(t *testing.T) {
	for of, want := range map[[2]string]string{
		{"cri-o://1.33.0", "unix:///run/containerd/containerd.sock"}: "cri-o",
		{"containerd://2.1.4", ""}:                                   "containerd",
		{"docker://27.0", ""}:                                        "docker",
		{"", "unix:///var/run/crio/crio.sock"}:                       "cri-o",
		{"", "/run/k3s/containerd/containerd.sock"}:                  "containerd",
		{"", "unix:///run/runtime.sock"}:                             "",
		{"2.1", ""}:                                                  "",
		{"", ""}:                                                     "",
	} {
		if got := nodeconfig.RuntimeName(of[0], of[1]); got != want {
			t.Errorf("%q: %q, want %q", of, got, want)
		}
	}
}

func TestReadKata(t *testing.T) {
	const file = "/opt/kata/share/defaults/kata-containers/configuration-qemu.toml"
	for name, tt := range map[string]struct {
		tree fstest.MapFS
		want *nodeconfig.Kata
	}{
		"all": {
			tree(file, "[hypervisor.qemu]\ncold_plug_vfio = 'root-port'\nhot_plug_vfio = 'bridge-port'\npcie_root_port = 8\n[runtime]\npod_resource_api_sock = '/s'\n"),
			&nodeconfig.Kata{File: file, ColdPlug: "root-port", HotPlug: "bridge-port", Socket: "/s", RootPorts: 8},
		},
		"nothing": {tree(file, ""), &nodeconfig.Kata{File: file, ColdPlug: "no-port", HotPlug: "no-port"}},
		"empty words": {tree(file, "[hypervisor.clh]\ncold_plug_vfio = ''\n"),
			&nodeconfig.Kata{File: file, ColdPlug: "no-port", HotPlug: "no-port"}},
		"laid over": {
			tree(file, "[hypervisor.qemu]\ncold_plug_vfio = 'root-port'\npcie_root_port = 8\n",
				"/opt/kata/share/defaults/kata-containers/config.d/20-b.toml", "[hypervisor.qemu]\npcie_root_port = 20\n",
				"/opt/kata/share/defaults/kata-containers/config.d/10-a.toml", "[hypervisor.qemu]\npcie_root_port = 10\n"),
			&nodeconfig.Kata{File: file, ColdPlug: "root-port", HotPlug: "no-port", RootPorts: 20, Drops: []string{
				"/opt/kata/share/defaults/kata-containers/config.d/10-a.toml", "/opt/kata/share/defaults/kata-containers/config.d/20-b.toml"}},
		},
	} {
		got, err := nodeconfig.ReadKata(tt.tree, file)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if _, err := nodeconfig.ReadKata(tree(file, "x"), file); err == nil || !strings.Contains(err.Error(), file+": line 1") {
		t.Errorf("got %v", err)
	}
}

// TestMistyped: the shims do not start with a value of another type, in whichever file it stands.
func TestMistyped(t *testing.T) {
	const file, drop = "/etc/kata-containers/configuration.toml", "/etc/kata-containers/config.d/10-a.toml"
	for text, want := range map[string]string{
		"[hypervisor.qemu]\npcie_root_port = '8'\n":              `hypervisor.qemu.pcie_root_port is "8": write the number of ports, such as 8`,
		"[hypervisor.qemu]\npcie_root_port = -5\n":               "hypervisor.qemu.pcie_root_port is -5: write the number",
		"[hypervisor.qemu]\npcie_root_port = 4294967296\n":       "hypervisor.qemu.pcie_root_port is 4294967296: write the number",
		"[hypervisor.qemu]\npcie_root_port = 8.5\n":              "hypervisor.qemu.pcie_root_port is 8.5: write the number",
		"[hypervisor.clh]\ncold_plug_vfio = true\n":              `hypervisor.clh.cold_plug_vfio is true: write a port in quotes, such as "root-port"`,
		"[hypervisor.clh]\nhot_plug_vfio = 1\n":                  "hypervisor.clh.hot_plug_vfio is 1: write a port",
		"[runtime]\npod_resource_api_sock = false\n":             "runtime.pod_resource_api_sock is false: write the path of kubelet's socket in quotes",
		"[hypervisor.qemu]\npcie_root_port = 4294967295\n":       "",
		"[hypervisor]\nqemu = 3\n[other]\npcie_root_port = ''\n": "",
	} {
		for name, files := range map[string]fstest.MapFS{file: tree(file, text), drop: tree(file, "", drop, text)} {
			_, err := nodeconfig.ReadKata(files, file)
			broken, is := errors.AsType[*nodeconfig.Broken](err)
			if want == "" && err == nil {
				continue
			}
			if want == "" || !is || broken.File != name || !strings.Contains(err.Error(), "read "+name+": "+want) {
				t.Errorf("%q in %s: got %v, want %q", text, name, err, want)
			}
		}
	}
}

func TestKataVersion(t *testing.T) {
	if got, err := nodeconfig.KataVersion(tree("/opt/kata/VERSION", "3.15.0\nmore\n")); err != nil || got != "3.15.0" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := nodeconfig.KataVersion(tree()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestKataFiles(t *testing.T) {
	got, err := nodeconfig.KataFiles(tree("/etc/kata-containers/configuration.toml", "", "/etc/kata-containers/config.d/configuration.toml", "",
		"/opt/kata/share/defaults/kata-containers/runtimes/qemu/configuration.toml", "", "/opt/kata/share/defaults/kata-containers/other.toml", ""))
	want := []string{"/etc/kata-containers/configuration.toml", "/opt/kata/share/defaults/kata-containers/runtimes/qemu/configuration.toml"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestReadKubelet(t *testing.T) {
	const file = "/var/lib/kubelet/config.yaml"
	for name, tt := range map[string]struct {
		tree fstest.MapFS
		want *nodeconfig.Kubelet
		err  string
	}{
		"all": {
			tree: tree(file, "topologyManagerPolicy: restricted\ntopologyManagerScope: pod\n"+
				"topologyManagerPolicyOptions: {max-allowable-numa-nodes: \"64\"}\nfeatureGates: {A: true, B: false}\n"),
			want: &nodeconfig.Kubelet{File: file, Policy: "restricted", Scope: "pod", MaxNUMANodes: 64, Gates: map[string]bool{"A": true, "B": false}},
		},
		"nothing": {tree: tree(file, "kind: KubeletConfiguration\n"), want: &nodeconfig.Kubelet{File: file, Policy: "none", Scope: "container", MaxNUMANodes: 8, Gates: map[string]bool{}}},
		"JSON": {
			tree: tree("/etc/kubernetes/kubelet/config.json", `{"topologyManagerPolicy": "best-effort"}`),
			want: &nodeconfig.Kubelet{File: "/etc/kubernetes/kubelet/config.json", Policy: "best-effort", Scope: "container", MaxNUMANodes: 8, Gates: map[string]bool{}},
		},
		"no number":       {tree: tree(file, "topologyManagerPolicyOptions:\n  max-allowable-numa-nodes: many\n"), err: file + `:2:29: max-allowable-numa-nodes is "many": write a number`},
		"neither yes, no": {tree: tree(file, "featureGates:\n  A: maybe\n"), err: file + `:2:6: the feature gate A is "maybe": write true or false`},
		"no YAML":         {tree: tree(file, "a: [\n"), err: "read " + file + ": " + file + ":"},
		"none":            {tree: tree(), err: "file does not exist"},
	} {
		got, err := nodeconfig.ReadKubelet(tt.tree, "/var/lib/kubelet")
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: got %v, want %q in it", name, err, tt.err)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// TestKeep: nothing else of a configuration is kept.
func TestKeep(t *testing.T) {
	got, err := nodeconfig.Keep([]byte("topologyManagerPolicy: none\nstaticPodURLHeader: {token: [x]}\nfeatureGates: {A: true, B: [secret]}\ntopologyManagerScope: [secret]\ncontainerRuntimeEndpoint: unix:///run/x.sock\n"))
	want := map[string]any{"topologyManagerPolicy": "none", "containerRuntimeEndpoint": "unix:///run/x.sock", "featureGates": map[string]any{"A": true}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := nodeconfig.Keep([]byte("a: [")); err == nil {
		t.Error("what is no YAML is kept")
	}
}

// FuzzTOML: whatever stands in a file is read, or refused with its name and the line.
func FuzzTOML(f *testing.F) {
	for _, seed := range []string{"", "imports = ['conf.d/*.toml']", "[hypervisor.qemu]\npcie_root_port = 8", "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.k.options]\nConfigPath='x'", "[crio.runtime.runtimes.k]\nruntime_type='vm'", "a.b.c = [[1], {x = 2}]", "x = 1979-05-27"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const kata, crio = "/etc/kata-containers/configuration.toml", "/etc/crio/crio.conf"
		_, err := nodeconfig.ReadRuntime(tree(containerd, text), "")
		if err != nil && !strings.Contains(err.Error(), "read "+containerd+": line ") {
			t.Errorf("containerd: %v", err)
		}
		if _, err := nodeconfig.ReadRuntime(tree(crio, text), ""); err != nil && !strings.Contains(err.Error(), "read "+crio+": line ") {
			t.Errorf("CRI-O: %v", err)
		}
		if _, err := nodeconfig.ReadKata(tree(kata, text), kata); err != nil &&
			!strings.Contains(err.Error(), "read "+kata+": line ") && !strings.Contains(err.Error(), ": write ") {
			t.Errorf("Kata: %v", err)
		}
	})
}

// FuzzKubelet: what can be read can be kept.
func FuzzKubelet(f *testing.F) {
	f.Add("topologyManagerPolicy: restricted\ntopologyManagerPolicyOptions: {max-allowable-numa-nodes: 64}\nfeatureGates: {A: true}\n")
	f.Fuzz(func(t *testing.T, text string) {
		const file = "/var/lib/kubelet/config.yaml"
		k, err := nodeconfig.ReadKubelet(tree(file, text), "/var/lib/kubelet")
		if err == nil && (k.Policy == "" || k.Gates == nil) {
			t.Errorf("%+v", k)
		}
		if _, kept := nodeconfig.Keep([]byte(text)); kept != nil && err == nil {
			t.Errorf("it is read, and cannot be kept: %v", kept)
		}
	})
}
