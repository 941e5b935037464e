// Release puts together what a release is: takes what was built into one directory, and packs, names and
// lists it.
//
//	release -version v1.2.3 -in dist -out dist/release -repository . -base https://example.com/v1.2.3
//
// It builds nothing and reads no network. Its bytes depend on nothing but the files, the flags and
// SOURCE_DATE_EPOCH. `make release` has built what it takes; docs/release.md lists what comes out.
package main
