package nicconfig_test

import (
	"errors"
	"testing"

	"kata-device-plugin/internal/nicconfig"
)

// TestFiles: the configurations of both old plugins, mounted where they were, are one.
func TestFiles(t *testing.T) {
	sriov := nicconfig.File{Name: "/etc/pcidp/config.json", Data: []byte(`{"resourceList": [{"resourceName": "net", "sriovMode": true, "selectors": {"vendors": ["8086"]}}]}`)}
	shared := nicconfig.File{Name: "/k8s/config.json", Data: []byte(`{"configList": [{"resourceName": "hca", "rdmaHcaMax": 3, "selectors": {"vendors": ["15b3"]}}]}`)}
	c, err := nicconfig.ParseFiles([]nicconfig.File{sriov, shared}, nicconfig.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Pools) != 1 || len(c.Shared) != 1 || c.Pools[0].Resource.String() != "intel.com/net" || c.Shared[0].Resource.String() != "rdma/hca" || len(c.Ignored) != 1 {
		t.Errorf("%+v", c)
	}
	if c, err := nicconfig.ParseFiles(nil, nicconfig.Options{}); err != nil || len(c.Pools)+len(c.Shared) > 0 {
		t.Errorf("no file: %+v, %v", c, err)
	}
}

// TestFilesTogether: what cannot be told apart is found across files, and each problem says
// whose it is.
func TestFilesTogether(t *testing.T) {
	a := nicconfig.File{Name: "a.json", Data: []byte("{\"resourceList\": [\n {\"resourceName\": \"net\", \"selectors\": {\"vendors\": [\"8086\"]}}]}")}
	b := nicconfig.File{Name: "b.json", Data: []byte(`{"configList": [{"resourceName": "net", "resourcePrefix": "intel.com", "rdmaHcaMax": 3, "selectors": {"vendors": ["15b3"]}},` +
		`{"resourceName": "Net_Info", "resourcePrefix": "intel.com", "rdmaHcaMax": 1, "selectors": {"vendors": ["15b3"]}}, 7]}`)}
	_, err := nicconfig.ParseFiles([]nicconfig.File{a, b}, nicconfig.Options{})
	var problems nicconfig.Problems
	if !errors.As(err, &problems) || len(problems) != 3 {
		t.Fatalf("%v", err)
	}
	for i, want := range []string{
		`b.json:1:34: configList[0].resourceName: "net" makes intel.com/net, which the pool in a.json, line 2 declares; rename one of the two, or make them one pool`,
		`b.json:1:142: configList[1].resourceName: "Net_Info" makes intel.com/Net_Info, whose environment variable PCIDEVICE_INTEL_COM_NET_INFO is also that of intel.com/net in a.json, line 2; rename one of the two: a container with both would see the devices of one`,
		`b.json:1:239: configList[2]: 7 is not an object; write its fields between { and }`,
	} {
		if got := problems[i].Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
