// Package exit has the codes that the programs exit with.
package exit

// Exit codes. Findings, Incomplete and Internal are those of the command for people, whose codes a
// script goes by: a fault of its own is never taken for one of the cluster's.
const (
	OK         = 0
	Error      = 1
	Findings   = 1 // what was looked at is not in order
	Usage      = 2 // the command line, or an input that cannot be read
	Incomplete = 3 // something that was asked for could not be looked at
	Internal   = 70

	Interrupted = 130 // it was told to end, and waited for an input that did not come
)
