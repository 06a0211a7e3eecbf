// Package pages reads Curfew's documentation: the Markdown files that people read, with their links, headings, code blocks and the shell
// commands in these. Its tests hold the pages to Curfew itself. They check every link, run the code blocks that can be run here, and parse
// the others:
//
//	markdown.go     a page and its parts
//	shell.go        the commands of a block
//	links_test.go   links, anchors, pictures; every page can be reached
//	blocks_test.go  each block has a language that is known, and a file in that language
//	run_test.go     the blocks of a page in order, in one shell, with a Curfew that was just started
//	reader_test.go  that shell and that Curfew
//	newcomer_test.go  the first pages in a bare root, from git clone on; it takes root
//
// The commands of curfew are held to the real command tree by cmd/internal/commands, which uses this package too.
package pages
