// Package reference writes the pages of docs/reference and docs/benchmarks.md, the list of files in docs/internals/architecture.md, and the OpenAPI document
// that Curfew serves. They come from the code: the tree of commands, the settings, the metrics of a running Curfew, the routes of its API with the
// types of their answers, and the results of the last benchmark. All of it is in the package's tests.
//
//	go test ./cmd/internal/reference -write
//
// (`make docs`) writes them; without -write the tests fail if they are not current. The generated part of a page is between the marks <!-- NAME -->
// and <!-- /NAME -->; the rest of the page is written by hand.
package reference
