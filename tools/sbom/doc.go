// Package sbom says what a Go program is made of, as an SPDX 2.3 document: the module of the program,
// each module that is linked into it with version, checksum and licence, and the Go release.
//
// All of it is read from the program itself and from the module cache that it was built from. There is
// no network, and the same program gives the same bytes.
package sbom
