package cli

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/term"
)

// Terminal is the number of columns of the terminal that is written to, 0 where it is none, and
// whether what goes wrong is written to a terminal.
func Terminal(stdout, stderr *os.File) (width int, watched bool) {
	if columns, _, err := term.GetSize(int(stdout.Fd())); err == nil {
		width = columns
	}
	return width, term.IsTerminal(int(stderr.Fd()))
}

// patience is how long people wait without asking themselves what happens.
const patience = time.Second

// begin begins something that may take long. Whoever waits at a terminal is told what it is, when it
// has taken a while; the end is to be called when it is done.
func (e Env) begin(what string) (end func()) {
	if !e.Watched {
		return func() {}
	}
	slow := time.AfterFunc(patience, func() { fmt.Fprintf(e.Stderr, "%s ...\n", what) })
	return func() { slow.Stop() }
}
