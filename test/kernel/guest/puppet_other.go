//go:build !amd64

package main

import "errors"

// The kernel is built for amd64. Elsewhere this program is only vetted.
type puppet struct{}

func puppets(int) ([]*puppet, error)              { return nil, errors.ErrUnsupported }
func (*puppet) call(uintptr, ...any) (int, error) { return 0, errors.ErrUnsupported }
func (*puppet) release() error                    { return errors.ErrUnsupported }
func text0(s string) []byte                       { return []byte(s) }
