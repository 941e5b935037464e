// Package examples has the claims and pods of deploy/examples scheduled by a real scheduler, on the
// devices that the driver would publish for a simulated board.
package examples
