// Package exit has the codes that the programs exit with.
package exit

// Exit codes.
const (
	OK    = 0
	Error = 1
	Usage = 2
)
