package exporter

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"kata-device-plugin/internal/exit"
	"kata-device-plugin/internal/host"
)

// TestRefused: what is wrong with a command line is told with the flag, its value and a remedy.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"--poll-interval=10ms", []string{"--poll-interval 10ms", "1s"}},
		{"--stale-after=30s", []string{"--stale-after 30s", "1m0s"}},
		{"--poll-interval=2m", []string{"--stale-after 1m30s", "4m0s"}},
		{"--settle=-1s", []string{"--settle"}},
		{"--web.listen-address=", []string{"--web.listen-address", ":9818", "--textfile"}},
		{"--textfile=metrics.prom", []string{"--textfile", "absolute"}},
		{"--textfile=/x/metrics.txt", []string{"--textfile", ".prom"}},
		{"--textfile=/x/y.prom --web.listen-address=:1", []string{"--textfile", "--web.listen-address"}},
		{"--kubelet-dir=kubelet", []string{"--kubelet-dir", "absolute"}},
		{"--nic-config-file=config.json", []string{"nic-config-file", "absolute"}},
		{"--web.config.file=/does/not/exist", []string{"/does/not/exist"}},
		{"--nonsense", []string{"nonsense", "--help"}},
		{"serve", []string{`"serve"`, "--help"}},
		{"introspect", []string{"introspect metrics"}},
	} {
		var out, errs bytes.Buffer
		code := Command(t.Context(), "device-exporter", "v1", Node{Roots: host.Under(t.TempDir(), "x")}, strings.Fields(tt.args), &out, &errs)
		if code != exit.Usage || out.Len() > 0 || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%s: code %d, out %q, %q", tt.args, code, out.String(), errs.String())
		}
		for _, want := range tt.want {
			if !strings.Contains(errs.String(), want) {
				t.Errorf("%s: %q does not say %q", tt.args, errs.String(), want)
			}
		}
	}
}

func TestAsked(t *testing.T) {
	for args, want := range map[string]string{"--version": "device-exporter v1\n", "introspect metrics": "passthrough_device_info"} {
		var out, errs bytes.Buffer
		if code := Command(t.Context(), "device-exporter", "v1", Node{Roots: host.Under(t.TempDir(), "x")}, strings.Fields(args), &out, &errs); code != exit.OK || !strings.Contains(out.String(), want) || errs.Len() > 0 {
			t.Errorf("%s: %d %q %q", args, code, out.String(), errs.String())
		}
	}
	var out, errs bytes.Buffer
	if code := Command(t.Context(), "device-exporter", "v1", Node{Roots: host.Under(t.TempDir(), "x")}, []string{"--help"}, &out, &errs); code != exit.OK || !strings.Contains(errs.String(), "-poll-interval") {
		t.Errorf("%d %q", code, errs.String())
	}
}

func TestOptions(t *testing.T) {
	o, err := parse("x", strings.Fields("--textfile=/t/x.prom --pod-uid --nic-config-file=/a --nic-config-file=/b --kubelet-dir=/k --dev-dir=/host/dev"), &bytes.Buffer{})
	must(t, err)
	if o.Listen != "" || o.Textfile != "/t/x.prom" || !o.UIDs || strings.Join(o.NICs, " ") != "/a /b" || o.Poll != 10*time.Second {
		t.Errorf("%+v", o)
	}
	if r := o.under(host.System("x")); r.PodResources != "/k/pod-resources" || r.Dev != "/host/dev" || r.DevicePlugins != "/var/lib/kubelet/device-plugins" {
		t.Errorf("%+v", r)
	}
}
