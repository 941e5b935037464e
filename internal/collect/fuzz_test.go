package collect

import (
	"encoding/json"
	"strings"
	"testing"

	"kata-device-plugin/internal/capture"
)

// FuzzKeys: of a settings file nothing is kept but lines of the keys, and what may be the rest of
// a list.
func FuzzKeys(f *testing.F) {
	for _, s := range []string{
		"", "[a]\nkept = 1\nother = 's3cr3t'\n", "kept = [\n'a',\n'b' ]\nother = 2", "kept = [\nother = 2\n", "\"kept\" = [] # x\r\n[b]\n[[c]]\nkept=2", "kept", "=kept",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		kept, err := keys("kept")([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		first, rest, _ := strings.Cut(string(kept), "\n")
		if !strings.HasPrefix(first, "# Of this file there are here: kept") {
			t.Errorf("it does not say what it is: %q", first)
		}
		for line := range strings.Lines(rest) {
			key, _, _ := strings.Cut(strings.TrimSpace(line), "=")
			if strings.Trim(strings.TrimSpace(key), `"`) != "kept" && !strings.ContainsAny(line[:1], "[]\"'#") {
				t.Errorf("%q is kept of %q", line, text)
			}
		}
	})
}

// FuzzLocked: only locks of the file count, from where they begin.
func FuzzLocked(f *testing.F) {
	const id = "00:1a:1234"
	for _, s := range []string{
		"", "1: OFDLCK ADVISORY  WRITE -1 00:1a:1234 0 EOF\n", "2: OFDLCK ADVISORY  READ  -1 00:1a:1234 0 0\n3: OFDLCK ADVISORY  WRITE -1 00:1a:1234 256 511",
		"1: POSIX  ADVISORY  WRITE 7 00:1a:1234 0 EOF\n1: -> OFDLCK ADVISORY  WRITE -1 00:1a:1234 0 EOF\n", "1: OFDLCK ADVISORY  WRITE -1 00:1a:1234 -5 x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, list string) {
		starts, held := locked(list, id)
		if held != (held && strings.Contains(list, id)) || len(starts) > 0 && !held || len(starts) > strings.Count(list, id) {
			t.Errorf("%v, %v of %q", starts, held, list)
		}
		for _, at := range starts {
			if at < 0 {
				t.Errorf("a lock begins at %d: %q", at, list)
			}
		}
	})
}

// FuzzReadable: a record that can be read can be read again, and has no serialized answer any more.
func FuzzReadable(f *testing.F) {
	for _, s := range []string{
		"", "{}", "null", "[]", `{"Data":{"PodDeviceEntries":[{"PodUID":"x","AllocResp":"CgZhOgRiAQ=="}],"RegisteredDevices":{"r":["b","a"]}},"Checksum":1}`,
		`{"Data":{"PodDeviceEntries":[{"DeviceIDs":{"-1":["1"]},"AllocResp":null},{}]}}`, `{"data":{"poddeviceentries":[{"allocresp":"AA=="}]}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once, err := readable([]byte(text))
		if err != nil {
			return
		}
		var r capture.Checkpoint
		if err := json.Unmarshal(once, &r); err != nil {
			t.Fatalf("%v: %s", err, once)
		}
		if strings.Contains(string(once), `"AllocResp"`) && !strings.Contains(text, `\`) {
			t.Errorf("an answer is left as it was: %s", once)
		}
	})
}
