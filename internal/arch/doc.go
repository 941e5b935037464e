// Package arch holds the tests of what the code must not become: who may import whom, what the
// shipped programs may contain, how the manifests may look, and the house rules that a linter
// cannot express. It has no code of its own. Every rule is a row with its reason; a change that
// needs another rule changes the row, where a reviewer sees it.
package arch
