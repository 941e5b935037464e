package claim_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"kata-device-plugin/internal/confine"
)

// TestConfined: a process that Landlock leaves nothing but files in the store's directory can do
// all of it.
func TestConfined(t *testing.T) {
	if dir := os.Getenv("CLAIMS_IN"); dir != "" {
		s := open(t, dir)
		report, err := confine.Process(confine.Access{Write: []string{dir}})
		must(t, err)
		unlock, err := s.Lock(t.Context())
		must(t, err)
		must(t, errors.Join(s.Put(record(uidA, 1)), s.Put(record(uidA, 2)), s.Remove(uidA, start), s.Remove(uidA, start.Add(1))))
		place(t, dir, uidB, nil)
		must(t, errors.Join(s.Quarantine(uidB), s.Put(record(uidB, 1)), s.Discard(uidB), s.Forget(start.Add(2)), unlock()))
		fmt.Println("confined", report.ABI)
		return
	}
	dir := scratch(t)
	cmd, out := child(t, dir)
	line, readErr := out.ReadString('\n')
	var abi int
	_, err := fmt.Sscanf(line, "confined %d\n", &abi)
	if err := errors.Join(err, readErr, cmd.Wait()); err != nil {
		t.Fatal(err, line)
	}
	if abi == 0 {
		skip(t, "the kernel has no Landlock")
	}
	wantNames(t, dir, uidB+".json")
	wantRecord(t, open(t, dir), record(uidB, 1))
}
