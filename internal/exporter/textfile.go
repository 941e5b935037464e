package exporter

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/prometheus/common/expfmt"

	"kata-device-plugin/internal/wholefile"
)

// write writes the metrics to a file for node_exporter's textfile collector, whole or not at all.
// What the Go runtime tells of itself is left out: node_exporter has series of the same names.
func (e *Exporter) write() error {
	families, err := e.collector.Gather()
	if err != nil {
		return fmt.Errorf("make the metrics: %w", err)
	}
	var text bytes.Buffer
	to := expfmt.NewEncoder(&text, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range families {
		if err := to.Encode(f); err != nil {
			return fmt.Errorf("make the metrics: %w", err)
		}
	}
	if err := wholefile.Write(e.options.Textfile, text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", e.options.Textfile, err)
	}
	e.written = sha256.Sum256(text.Bytes())
	return nil
}

// unwrite removes the file, if it says what was written last: nobody keeps that true any more, and node_exporter
// would go on to tell it. What another exporter has written since is that one's. The file is known by what it
// says, since a new file soon has the inode of one that was replaced.
func (e *Exporter) unwrite() error {
	if e.options.Textfile == "" {
		return nil
	}
	text, err := os.ReadFile(e.options.Textfile)
	if err == nil && sha256.Sum256(text) == e.written {
		err = os.Remove(e.options.Textfile)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("take the metrics back: %w", err)
	}
	return nil
}
