package node

import (
	"context"
	"path/filepath"

	"curfew/monitor/audit"
)

// openAudit opens the record of expiries. Without a data folder there is none.
func (n *Node) openAudit() (err error) {
	if n.settings.Audit == "false" || n.settings.DataDir == "" {
		return nil
	}
	n.audit, err = audit.Open(audit.Options{
		Dir: filepath.Join(n.settings.DataDir, "audit"), Log: n.log, Registerer: n.metrics,
	})
	return err
}

// runAudit writes records until stop is called, once the node and its pages have stopped. stop waits for the last of them.
func (n *Node) runAudit(ctx context.Context) (stop func()) {
	stopLog := func() {}
	if n.audit != nil {
		stopLog = runInBackground(ctx, n.audit.Run)
	}
	return func() {
		n.recorder.Close()
		stopLog()
	}
}
