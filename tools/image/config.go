package main

import v1 "github.com/google/go-containerregistry/pkg/v1"

// config says how the image runs. The configuration that is passed in lists the layers.
func (s spec) config(made v1.ConfigFile, arch string) *v1.ConfigFile {
	made.OS = "linux"
	made.Architecture = arch
	made.Created = v1.Time{Time: s.Time}
	made.Author = ""
	made.Config = v1.Config{
		// No Cmd and no Env: what a program is told, if anything, is in its manifest.
		Entrypoint: []string{"/" + s.Name},
		WorkingDir: "/",
		// uid 0 by design: kubelet's plugin directory and the CDI directory belong to root. The manifest
		// takes every capability away. Numbers, since the image has no /etc/passwd to look names up in.
		User:   "0:0",
		Labels: s.labels(),
	}
	return &made
}
