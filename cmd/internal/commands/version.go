package commands

import (
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/node"
)

// versionAnswer is what `curfew version -o json` prints.
type versionAnswer struct {
	Version    string     `json:"version"`
	Commit     string     `json:"commit"`                // or unknown
	CommitTime *time.Time `json:"commit_time,omitempty"` // of the commit, if it is known
	Dirty      bool       `json:"dirty"`                 // the files differed from the commit
	Go         string     `json:"go"`
	Platform   string     `json:"platform"`
}

func versionCommand(b node.Build) *cobra.Command {
	var printer cli.Printer
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the Go version and the commit it was built from; with -o json also the commit's time and the platform",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := printer.Check(); err != nil {
				return cli.Usage(err)
			}
			if !printer.JSON() {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "curfew", cmd.Root().Version)
				return err
			}
			v := versionAnswer{Version: b.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			v.Commit, v.Dirty = b.Commit()
			if t, err := time.Parse(time.RFC3339, b.CommitTime); err == nil {
				v.CommitTime = &t
			}
			return printer.Print(cmd.OutOrStdout(), v, nil, nil)
		},
	}
	cmd.Flags().StringVarP(&printer.Output, "output", "o", "table", "table or json")
	cli.Offers(cmd, "output", cli.Outputs...)
	return cmd
}
