//go:build !linux

package cli

import (
	"context"
	"errors"
	"runtime"

	"github.com/spf13/cobra"

	"kata-device-plugin/internal/check"
)

// here is nowhere: devices are passed through on Linux.
func (*node) here(Env, string) error {
	return unusable(errors.New("this is no Linux node, but "+runtime.GOOS), "name a captured node with --root")
}

// thisNode is none.
func thisNode(context.Context, Env) (check.NodeInput, error) {
	return check.NodeInput{}, unusable(errors.New("this is no Linux node, but "+runtime.GOOS), "name a captured node instead of --host")
}

// nodeCommands are those that need a node.
func nodeCommands(Env) []*cobra.Command { return nil }
