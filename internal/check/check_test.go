package check_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/exit"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// TestCatalogued: a check is a row of the catalogue of findings, and there is one for an ID.
func TestCatalogued(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range check.Checks() {
		if seen[c.ID] || !slices.Contains(finding.Catalogue(), c.Kind) {
			t.Errorf("%s is there twice, or not in the catalogue", c.ID)
		}
		seen[c.ID] = true
	}
}

// TestNameRules: what kubelet and the API server accept, name by name, through a pod that asks.
func TestNameRules(t *testing.T) {
	long := func(n int) string { return strings.Repeat("a", n) }
	for name, want := range map[string]string{
		"foo.com/bar": "", "foo/bar": "", "rdma/hca_shared": "", "foo.com/Bar_X.y-z": "", "limits.foo.com/x": "", "attachable-volumes-x/y": "",
		"foo.com/" + long(63): "", strings.Repeat("a.", 121) + "aa/x": "",
		"hca": "NAM009", "kubernetes.io/x": "NAM010", "x.kubernetes.io/y": "NAM010", "notkubernetes.io/y": "NAM010", "requests.foo.com/x": "NAM010",
		"Foo.com/Bar": "NAM010", "foo_x.com/y": "NAM010", "foo.com/-x": "NAM010", "foo.com/x-": "NAM010", "a/b/c": "NAM010", "/x": "NAM010", "x/": "NAM010",
		"foo.com/0000:01:00.0": "NAM010", "foo.com/" + long(64): "NAM010", strings.Repeat("a.", 122) + "aa/x": "NAM010",
		"deviceclass.resource.kubernetes.io/gpu": "", "cpu": "", "memory": "", "hugepages-2Mi": "", "ephemeral-storage": "",
	} {
		r := check.Run(load(t, pod("p", "", `"`+name+`": "1"`, "")), check.Options{Enable: []string{"NAM009", "NAM010"}})
		got := ""
		for _, f := range r.Findings {
			got += f.ID
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestQuantities: numbers of devices as people write them.
func TestQuantities(t *testing.T) {
	for amount, whole := range map[string]bool{
		"1": true, "0": true, "1k": true, "2000m": true, "1e3": true, "1Ki": true, "1.5k": true, "+1": true, "3E": true, "1E2": true,
		"500m": false, "1.5": false, "one": false, "''": false, "-1": false, "1x": false, "1e99": false, "1/2": false, "Ki": false, "100u": false,
	} {
		r := check.Run(load(t, pod("p", "", "a.b/c: "+amount, "")), check.Options{Enable: []string{"POD002"}})
		if got := len(r.Findings) == 0; got != whole {
			t.Errorf("%s is a whole number: %v", amount, got)
		}
	}
}

// TestDidYouMean: a suggestion is made only where two names are nearly one.
func TestDidYouMean(t *testing.T) {
	const policy = "apiVersion: sriovnetwork.openshift.io/v1\nkind: SriovNetworkNodePolicy\nmetadata: {name: p, namespace: s}\nspec: {resourceName: c}\n"
	for name, want := range map[string]string{
		"any.io/c": "", "intel.com/vf_a": "", "intel.com/vf_b": `did you mean "intel.com/vf_a"`, "intel.com/vff_aa": `did you mean "intel.com/vf_a"`,
		"intel.com/vf_xyz": "correct the name", "other.io/vf_a": `write "intel.com/vf_a"`, "intel.com/VF-A": `did you mean "intel.com/vf_a"`,
		"intel.com/a_fv": "correct the name",
		"a/b":            "correct the name",
	} {
		got := ""
		for _, f := range check.Run(load(t, sriovConfig+"---\n"+policy+"---\n"+pod("p", "", name+`: "1"`, "")), check.Options{}).Findings {
			got += f.Help
		}
		if (want == "") != (got == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestCorroborated: of a name that a network and a pod have alike nothing is said as long as
// there is nothing in the input that could advertise it.
func TestCorroborated(t *testing.T) {
	both := network("a", "x.io/y", "sriov") + "---\n" + pod("p", attaches("a"), `x.io/y: "1"`, "")
	if got := found(check.Run(load(t, both), check.Options{})); got != nil {
		t.Errorf("%v", got)
	}
	want := []string{"NAM001 note pod default/p", "NAM002 note network default/a"}
	if diff := cmp.Diff(want, found(check.Run(load(t, both+"---\n"+sriovConfig), check.Options{}))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLoadedTwice: a must-gather has objects in lists and in files of their own.
func TestLoadedTwice(t *testing.T) {
	one := pod("p", ", uid: u", `x.io/y: "1"`, "  nodeName: n\nstatus: {phase: Running}\n")
	text := one + "---\n" + one + "---\n" + node("n", `x.io/y: "1"`)
	if got := found(check.Run(load(t, text), check.Options{})); got != nil {
		t.Errorf("%v", got)
	}
	wish := pod("p", "", `x.io/z: "1"`, "")
	if got := found(check.Run(load(t, wish+"---\n"+one+"---\n"+node("n", `x.io/y: "1"`)), check.Options{})); len(got) != 1 {
		t.Errorf("a manifest is looked at beside what is in the cluster: %v", got)
	}
}

// TestNamespaces: a name without a namespace is looked for in the pod's own, and that of an
// object that names none is the user's to say.
func TestNamespaces(t *testing.T) {
	text := strings.ReplaceAll(network("a", "", "macvlan")+"---\n"+pod("p", attaches("a"), "", ""), ", namespace: default", "")
	set := load(t, text, "network-attachment-definitions", "networkattachmentdefinitions")
	for _, namespace := range []string{"", "other"} {
		if got := found(check.Run(set, check.Options{Namespace: namespace})); got != nil {
			t.Errorf("%q: %v", namespace, got)
		}
	}
	r := check.Run(load(t, pod("p", attaches("a")+", uid: u", "", ""), "networkattachmentdefinition"), check.Options{Namespace: "other"})
	if got := found(r); !slices.Equal(got, []string{"NAD006 error pod default/p"}) {
		t.Errorf("%v", got)
	}
}

// TestExitCodes: a run that could not look does not look like a clean one.
func TestExitCodes(t *testing.T) {
	with := func(s ...finding.Severity) *check.Result {
		r := &check.Result{}
		for _, severity := range s {
			r.Findings = append(r.Findings, check.Finding{Kind: finding.Kind{Severity: severity}})
		}
		return r
	}
	skipped, accepted := with(finding.Note), with(finding.Error)
	skipped.Skipped, skipped.Made = []check.Skipped{{ID: "X"}}, 1
	blind := with(finding.Note)
	blind.Skipped = skipped.Skipped
	accepted.Findings[0].Ignored = "known"
	for name, tt := range map[string]struct {
		r         *check.Result
		threshold finding.Severity
		complete  bool
		want      int
	}{
		"nothing":                   {with(), finding.Note, true, exit.OK},
		"below the threshold":       {with(finding.Warning), finding.Error, true, exit.OK},
		"at the threshold":          {with(finding.Warning), finding.Warning, false, exit.Findings},
		"above the threshold":       {with(finding.Note, finding.Error), finding.Warning, false, exit.Findings},
		"skipped, and nobody minds": {skipped, finding.Error, false, exit.OK},
		"skipped":                   {skipped, finding.Error, true, exit.Incomplete},
		"skipped, and found":        {skipped, finding.Note, true, exit.Findings},
		"nothing was looked at":     {blind, finding.Error, false, exit.Incomplete},
		"only the input was":        {blind, finding.Note, false, exit.Findings},
		"accepted":                  {accepted, finding.Note, true, exit.OK},
	} {
		if got := tt.r.ExitCode(tt.threshold, tt.complete && tt.r.Incomplete()); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// TestSelection: checks are asked for one by one or by family, and what was not asked for is
// neither skipped nor passed.
func TestSelection(t *testing.T) {
	set := load(t, pod("p", "", `hca: "1"`, ""))
	r := check.Run(set, check.Options{Enable: []string{"NAM", "POD001"}, Disable: []string{"NAM010"}})
	if got := found(r); !slices.Equal(got, []string{"NAM009 error pod default/p"}) {
		t.Errorf("%v", got)
	}
	if !slices.Contains(r.Passed, "POD001") || !slices.Contains(r.Disabled, "NAM010") || !slices.Contains(r.Disabled, "POD002") {
		t.Errorf("passed %v, disabled %v", r.Passed, r.Disabled)
	}
	for _, s := range r.Skipped {
		if !strings.HasPrefix(s.ID, "NAM") || len(s.Missing) == 0 {
			t.Errorf("skipped %+v", s)
		}
	}
	if total := len(r.Passed) + len(r.Skipped) + len(r.Disabled) + 1; total != len(check.Checks()) {
		t.Errorf("%d of %d checks are accounted for", total, len(check.Checks()))
	}
}

// TestIgnore: what somebody accepts is kept, with the reason, and not counted.
func TestIgnore(t *testing.T) {
	ignores, err := check.ReadIgnores("ignore.yaml", []byte("# why\n- {id: NAM009, object: pod default/p, reason: being renamed}\n- {id: NAM009, object: Pod default/s, reason: as manifests say}\n"))
	must(t, err)
	text := pod("p", "", `hca: "1"`, "") + "---\n" + pod("q", "", `hca: "1"`, "") + "---\n" + pod("s", "", `hca: "1"`, "") + "---\n" + pod("r", `, annotations: {katacontainers.io/ignore: " POD001 ,NAM009"}`, `hca: "1"`, "")
	r := check.Run(load(t, text), check.Options{Ignore: ignores})
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.Object.Name+": "+f.Ignored)
	}
	if diff := cmp.Diff([]string{"p: being renamed", "q: ", "s: as manifests say", "r: annotation katacontainers.io/ignore"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.Count(finding.Error) != 1 || !r.Fails(finding.Warning) {
		t.Errorf("%d errors are counted", r.Count(finding.Error))
	}
}

func TestIgnoreFile(t *testing.T) {
	for text, want := range map[string]string{
		"a: b":                            "ignore.yaml:1:1: is not a list",
		"- {id: NAM009, object: pod a/b}": "ignore.yaml:1:3: reason is missing",
		"- {id: NAM999, object: pod a/b, reason: r}": `ignore.yaml:1:8: there is no finding "NAM999"`,
		"- {id: NAM04, object: pod a/b, reason: r}":  `ignore.yaml:1:8: there is no finding "NAM04"`,
		"- {id: NAM, object: pod a/b, reason: r}":    `ignore.yaml:1:8: there is no finding "NAM"`,
		"- [\n": "read accepted findings: ignore.yaml:",
	} {
		_, err := check.ReadIgnores("ignore.yaml", []byte(text))
		if _, ok := errors.AsType[manifest.Problem](err); !ok || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// FuzzRun: whatever objects say, they are checked.
func FuzzRun(f *testing.F) {
	f.Add(sriovConfig + "---\n" + network("a", "intel.com/vf_a", "sriov") + "---\n" + pod("p", attaches("default/a@net1"), `intel.com/vf_a: "1"`, ""))
	f.Add(rdmaConfig + "---\n" + plugin(`["--resource-prefix", a.b]`) + "---\n" + node("n", `a.b/c: "1"`) + "---\n" + injector)
	f.Fuzz(func(t *testing.T, text string) {
		set, err := manifest.Load([]string{"-"}, manifest.Options{Stdin: strings.NewReader(text), Complete: strings.Split(everything, ",")})
		if err != nil {
			return
		}
		r := check.Run(set, check.Options{Verbose: true})
		for _, f := range r.Findings {
			if f.Message == "" || f.Help == "" || f.ID == "" {
				t.Errorf("%+v", f)
			}
		}
	})
}
