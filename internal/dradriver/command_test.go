package dradriver

import (
	"bytes"
	"strings"
	"testing"

	"kata-device-plugin/internal/exit"
	"kata-device-plugin/internal/host"
)

// TestCommand: what is wrong with a command line is said in one line, with what to do, before
// anything is done.
func TestCommand(t *testing.T) {
	for _, c := range []struct {
		args string
		node string // $NODE_NAME
		code int
		want string // in what is said
	}{
		{"--version", "", exit.OK, "driver v1\n"},
		{"--help", "", exit.OK, "--kubelet-dir"},
		{"", "", exit.Usage, "$NODE_NAME"},
		{"serve", "a", exit.Usage, `unexpected argument "serve"`},
		{"--no-such", "a", exit.Usage, "-no-such"},
		{"--types=gpu,tpu", "a", exit.Usage, `"tpu" is no type of devices, want some of gpu,nvswitch,nic,vf`},
		{"--poll-interval=1ns", "a", exit.Usage, "want 100ms or more"},
		{"--poll-interval=-1s", "a", exit.Usage, "want 100ms or more"},
		{"--kubelet-dir=kubelet", "a", exit.Usage, "absolute path"},
		{"--kubelet-dir=", "a", exit.Usage, "absolute path"},
		{"--web.config.file=/no/such", "a", exit.Usage, "/no/such"},
		{"--kubeconfig=/no/such", "a", exit.Error, "/no/such"},
	} {
		var out, err bytes.Buffer
		getenv := func(name string) string { return map[string]string{"NODE_NAME": c.node}[name] }
		code := Command(t.Context(), "driver", "v1", host.Under(t.TempDir(), "driver"), strings.Fields(c.args), getenv, &out, &err)
		said := strings.ReplaceAll(out.String()+err.String(), "  -", "  --")
		if code != c.code || !strings.Contains(said, c.want) || c.code == exit.Usage && strings.Count(said, "\n") != 1 {
			t.Errorf("%s: code %d, %q, want %d, %q", c.args, code, said, c.code, c.want)
		}
	}
}

// TestTypes: what is left out of the list is not offered.
func TestTypes(t *testing.T) {
	var err bytes.Buffer
	o, bad := parse("driver", []string{"--node-name=a", "--types=gpu,vf"}, func(string) string { return "" }, &err)
	must(t, bad)
	if got := joined(o.Excluded); got != "nvswitch,nic" {
		t.Errorf("excluded are %s", got)
	}
}
