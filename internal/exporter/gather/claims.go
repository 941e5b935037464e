package gather

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"kata-device-plugin/internal/claim"
	"kata-device-plugin/internal/nodestate"
)

// readClaims reads the records of the DRA driver. Where there is no directory, there is no driver.
func readClaims(to *nodestate.Reading[nodestate.ClaimRecords], dir string, now time.Time) {
	if err := removed(filepath.Dir(dir)); err != nil { // the driver's, which is mounted
		to.Took(nodestate.ClaimRecords{}, err, now)
		return
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		to.Absent(now)
		return
	case err == nil && info.Mode().Perm() != 0o700:
		// To open it would put it right, and that is the driver's business.
		err = fmt.Errorf("read records of claims: %s has mode %04o, want 0700: the driver sets it when it starts", dir, info.Mode().Perm())
	case err != nil:
		err = fmt.Errorf("read records of claims: %w", err)
	}
	var all nodestate.ClaimRecords
	if err == nil {
		all, err = listClaims(dir)
	}
	to.Took(all, err, now)
}

func listClaims(dir string) (nodestate.ClaimRecords, error) {
	store, err := claim.Open(dir)
	if err != nil {
		return nodestate.ClaimRecords{}, err
	}
	records, damaged, err := store.List()
	if err != nil {
		return nodestate.ClaimRecords{}, err
	}
	all := nodestate.ClaimRecords{Damaged: len(damaged)}
	for i := range records {
		r := &records[i]
		to := nodestate.ClaimRecord{UID: r.UID, Namespace: r.Namespace, Name: r.Name, State: string(r.State)}
		for k := range r.Devices {
			d := &r.Devices[k]
			to.Devices = append(to.Devices, nodestate.ClaimDevice{
				Pool: d.Pool, Name: d.Name, Address: d.Address, Group: d.Group, Requests: d.Requests, Admin: d.Admin, CDI: d.CDI,
			})
		}
		all.Records = append(all.Records, to)
	}
	return all, nil
}
