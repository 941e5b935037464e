// Package policy shows what the admission policies that this project deploys let through, on a
// real API server: nothing is known of an expression that was only read.
package policy
