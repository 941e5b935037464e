package deviceconfig_test

import (
	"strings"
	"testing"

	"kata-device-plugin/internal/deviceconfig"
)

const head = `"apiVersion":"vfio.katacontainers.io/v1alpha1","kind":"DeviceConfig"`

func TestDecode(t *testing.T) {
	for raw, want := range map[string]string{ // what the error has, "" for none
		`{` + head + `}`:                                        "",
		`{` + head + `,"vfioNodes":"cdev"}`:                     "",
		`{` + head + `,"vfioNodes":"group"}`:                    "",
		`{` + head + `,"vfioNodes":"both"}`:                     `vfioNodes "both": want cdev or group`,
		`{` + head + `,"vfioNode":"group"}`:                     `unknown field "vfioNode"`,
		`{` + head + `,"VFIONodes":"group"}`:                    `unknown field "VFIONodes"`,
		`{` + head + `,"vfioNodes":"cdev","vfioNodes":"group"}`: `duplicate field "vfioNodes"`,
		`{` + head + `,"vfioNodes":1}`:                          "vfioNodes",
		`{}`:                                                    `apiVersion "" and kind ""`,
		`{"apiVersion":"vfio.katacontainers.io/v1","kind":"DeviceConfig"}`:        `apiVersion "vfio.katacontainers.io/v1"`,
		`{"apiVersion":"vfio.katacontainers.io/v1alpha1","kind":"Configuration"}`: `kind "Configuration"`,
		`[]`: "array",
		``:   "end of JSON",
	} {
		_, err := deviceconfig.Decode([]byte(raw))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
}

func TestOver(t *testing.T) {
	class, claim := deviceconfig.Config{VFIONodes: deviceconfig.Group}, deviceconfig.Config{}
	if got := class.Over(claim).VFIONodes; got != deviceconfig.Group {
		t.Errorf("a claim that says nothing changes it to %q", got)
	}
	claim.VFIONodes = deviceconfig.Cdev
	if got := class.Over(claim).VFIONodes; got != deviceconfig.Cdev {
		t.Errorf("a claim does not change it: %q", got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{` + head + `,"vfioNodes":"group"}`))
	f.Add([]byte(`{"a":{"b":[]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := deviceconfig.Decode(raw)
		if err == nil && (c.APIVersion != deviceconfig.APIVersion || c.Kind != deviceconfig.Kind) {
			t.Errorf("%q is %+v", raw, c)
		}
	})
}
