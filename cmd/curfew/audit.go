package main

import (
	"context"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"curfew/monitor/audit"
)

// openAudit opens the record of expiries, if there is to be one: it is kept where messages are.
func (n *node) openAudit(c *config, metrics prometheus.Registerer, log *zap.Logger) (err error) {
	if !c.Audit || c.DataDir == "" {
		return nil
	}
	n.audit, err = audit.Open(audit.Options{
		Dir: filepath.Join(c.DataDir, "audit"), MaxBytes: int64(c.AuditSize), Log: log, Registerer: metrics,
	})
	return err
}

// runAudit writes what expires until stop is called, which waits for it.
func (n *node) runAudit(ctx context.Context) (stop func()) {
	if n.audit == nil {
		return func() {}
	}
	return beside(ctx, n.audit.Run)
}
