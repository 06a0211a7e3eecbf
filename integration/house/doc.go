// Package house checks the source itself: its language, its sizes, and which package imports which. It builds and starts
// nothing, so `make check` runs it each time.
//
//	language_test.go  words that are not used here, each with what to write instead
//	size_test.go      methods of a type, lines of a package; with -v it counts the whole tree
//	imports_test.go   which package may import which
//	architecture_test.go  docs/internals/architecture.md is about these packages, files and functions
//	pages_test.go     how long README and the glossary are; the tests that docs/guarantees.md names; the pictures in docs
//	tiers_test.go     the Makefile's lists of tests
//	testfiles_test.go files of tests are named for what they test
//	prose_test.go     sentences of the pages: how long they are, and turns of phrase
//	circles_test.go   counts the files that use one another in a circle
//	source_test.go    reads the Go files for the others
package house
