package check_test

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kata-device-plugin/internal/agent"
	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/dradriver"
	"kata-device-plugin/internal/exit"
	"kata-device-plugin/internal/exporter"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/nicplugin"
)

// helps are what our programs say of their flags. That of GPUs has none.
func helps(t *testing.T) map[string]string {
	t.Helper()
	roots := host.Under(t.TempDir(), "x")
	all := map[string]string{"kata-device-plugin": ""}
	for name, run := range map[string]func(out *bytes.Buffer) int{
		"nic-device-plugin": func(out *bytes.Buffer) int {
			return nicplugin.Command(t.Context(), "nic-device-plugin", "v", roots, []string{"--help"}, out, out)
		},
		"kata-dra-driver": func(out *bytes.Buffer) int {
			none := func(string) string { return "" }
			return dradriver.Command(t.Context(), "kata-dra-driver", "v", roots, []string{"--help"}, none, out, out)
		},
		"device-exporter": func(out *bytes.Buffer) int {
			return exporter.Command(t.Context(), "device-exporter", "v", exporter.Node{Roots: roots}, []string{"--help"}, out, out)
		},
	} {
		var out bytes.Buffer
		if code := run(&out); code != exit.OK || out.Len() == 0 {
			t.Fatalf("%s --help ends with %d: %s", name, code, out.String())
		}
		all[name] = out.String()
	}
	return all
}

// TestFlags: every flag that a program lists may be given to it, in the form that it has, and no
// other one. What a check knows of flags is then what the programs know.
func TestFlags(t *testing.T) {
	line := regexp.MustCompile(`(?m)^  -([A-Za-z0-9_.-]+)(?:[ \t]+(\S.*)?)?$`)
	for program, help := range helps(t) {
		accepted := map[string]bool{}
		for _, m := range line.FindAllStringSubmatch(help, -1) {
			accepted[m[1]] = m[2] != "" && len(m[1]) > 1
		}
		if program != "kata-device-plugin" && len(accepted) < 5 {
			t.Fatalf("%s: found only %v in\n%s", program, accepted, help)
		}
		for name, valued := range accepted {
			// Without a value of its own the next argument is the flag's, or one too many.
			if refused := refusedArgs(t, program, "--"+name, "value") != ""; refused == valued {
				t.Errorf("%s --%s value is refused: %t, and the flag wants a value: %t", program, name, refused, valued)
			}
			if why := refusedArgs(t, program, "--"+name+"=true"); why != "" {
				t.Errorf("%s has the flag --%s: %s", program, name, why)
			}
		}
		for _, name := range check.FlagNames(program) {
			if _, ok := accepted[name]; !ok {
				t.Errorf("%s has no flag --%s", program, name)
			}
		}
	}
}

// TestNoArguments: what the check says of kata-device-plugin, the program says itself.
func TestNoArguments(t *testing.T) {
	var told bytes.Buffer
	p := agent.Passthrough("kata-device-plugin", "v", host.Under(t.TempDir(), "x"))
	if code := p.Command(t.Context(), []string{"--version"}, &told); code != exit.Usage {
		t.Errorf("it ends with %d: %s", code, told.String())
	}
	if refusedArgs(t, "kata-device-plugin", "--version") == "" {
		t.Error("the check takes an argument that the program refuses")
	}
}

// TestNICConfigFiles: the checks look where the plugin does.
func TestNICConfigFiles(t *testing.T) {
	if got, want := check.NICConfigFiles(), nicplugin.DefaultConfig(); !slices.Equal(got, want) {
		t.Errorf("%v, and the plugin looks at %v", got, want)
	}
}

// TestDriverRights: the driver needs what its manifest gives it, and nothing that it does not.
func TestDriverRights(t *testing.T) {
	text, err := os.ReadFile("testdata/SEC008/pass.yaml")
	must(t, err)
	set, err := manifest.Load([]string{"../../deploy/kata-dra-driver/rbac.yaml"}, manifest.Options{})
	must(t, err)
	given, resources := map[string]bool{}, map[[2]string]bool{}
	for _, o := range set.Objects {
		for rule := range o.Get("rules").Each() {
			for _, resource := range rule.Get("resources").Texts() {
				group := rule.Get("apiGroups").Texts()[0]
				resources[[2]string{group, resource}] = true
				for _, verb := range rule.Get("verbs").Texts() {
					given[group+"/"+resource+"/"+verb] = true
				}
			}
		}
	}
	if len(given) < 10 {
		t.Fatalf("the manifest gives only %v", given)
	}
	for of := range resources {
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*"} {
			rule := "rules:\n- {apiGroups: [\"" + of[0] + "\"], resources: [" + of[1] + "], verbs: [\"" + verb + "\"]}\n"
			r := check.Run(load(t, strings.Replace(string(text), "rules:\n", rule, 1)), check.Options{Enable: []string{"SEC008"}})
			if more := len(r.Findings) > 0; more == given[of[0]+"/"+of[1]+"/"+verb] {
				t.Errorf("%s of %v is more than is needed: %t", verb, of, more)
			}
		}
	}
}

// refusedArgs is what the check says of arguments, "" for nothing.
func refusedArgs(t *testing.T, program string, args ...string) string {
	t.Helper()
	text := "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d}\nspec:\n  template:\n    spec:\n      containers:\n" +
		"      - name: c\n        image: x.io/" + program + ":v1\n        args: [\"" + strings.Join(args, `", "`) + "\"]\n"
	set, err := manifest.Load(nil, manifest.Options{Texts: []manifest.Source{{Name: "in.yaml", Data: []byte(text)}}})
	must(t, err)
	r := check.Run(set, check.Options{Enable: []string{"DSP011"}})
	if len(r.Skipped) > 0 {
		t.Fatalf("%v is skipped", r.Skipped)
	}
	i := slices.IndexFunc(r.Findings, func(f check.Finding) bool { return f.ID == "DSP011" })
	if i < 0 {
		return ""
	}
	return r.Findings[i].Message
}
