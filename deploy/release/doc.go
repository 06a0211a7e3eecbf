// Command release builds what is published of a version of Curfew: archives, Debian and RPM packages, the container image, a Homebrew
// formula, a bill of materials, and the checksums of all of them. It needs Go and no other program.
//
//	go run . -version v0.1.0 -commit SHA -time RFC3339 [-downloads URL] [-out DIR]
//	go run . -set v0.2.0
//
// The same commit and version give the same bytes, in any folder and at any time: every time stamp is the commit's, files are in a fixed
// order and belong to root, and nothing is taken from the machine that builds. The versions of the libraries and tools that take part are
// in go.mod.
//
// -set writes a version into the files of the repository that name one. A release of another version than theirs is refused.
package main
