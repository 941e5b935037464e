// Command inside is the part of a test node that runs in the node's namespaces. It is
// always started by package peer or by a program of the node.
//
//	inside init SPEC           the first process: makes the mounts and the network, then starts what it is asked to
//	inside container ROOT PROGRAM [ARG ...]   becomes a container's main process
//	inside mount PID ro|rw PATH               makes a directory read-only for another process, or ends that
//	peer-cni                   the same program, by this name: a CNI plugin
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "inside:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: inside init SPEC | container MOUNTS PROGRAM [ARG ...] | mount PID ro|rw PATH")

func run(args []string) error {
	if filepath.Base(args[0]) == "peer-cni" {
		return cni(os.Stdin, os.Stdout)
	}
	if len(args) < 3 {
		return errUsage
	}
	switch args[1] {
	case "init":
		return first(args[2])
	case "container":
		if len(args) < 4 {
			return errUsage
		}
		return container(args[2], args[3:])
	case "mount":
		if len(args) != 5 {
			return errUsage
		}
		return cover(args[2], args[3] == "ro", args[4])
	}
	return errUsage
}
