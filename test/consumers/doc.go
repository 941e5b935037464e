// Package consumers holds our CDI specs against the libraries that read them in the
// field. It is a module of its own, so that the old versions that Kata and the container
// runtimes are built with do not mix with what the product uses.
package consumers
