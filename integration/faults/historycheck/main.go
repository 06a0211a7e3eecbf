// Historycheck reads a log that a test of integration/faults has left behind and reports
// which promises the history in it breaks. It knows nothing else about the broker.
//
//	go run ./integration/faults/historycheck LOG
package main

import (
	"fmt"
	"io"
	"os"

	"curfew/integration/faults/history"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run returns 0 for a history that breaks no rule, 1 for one that does, and 2 if the file is not
// a history.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) != 1 {
		fmt.Fprintln(stderr, "usage: historycheck LOG")
		return 2
	}
	f, err := os.Open(args[0])
	if err != nil {
		fmt.Fprintln(stderr, "historycheck:", err)
		return 2
	}
	defer f.Close()
	report, err := history.Check(f)
	if err != nil {
		fmt.Fprintln(stderr, "historycheck:", err)
		return 2
	}
	report.Write(stdout)
	if !report.OK() {
		return 1
	}
	return 0
}
