package commands

import (
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"curfew/cmd/internal/cli"
)

// newLogger returns a logger to stderr, with one JSON object per line, or columns on a terminal. It does
// not sample. level and format are values of LOG_LEVEL and LOG_FORMAT.
func newLogger(level, format string) (*zap.Logger, error) {
	least, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, err
	}
	c := zap.NewProductionConfig()
	if format == "console" || format == "auto" && cli.OnTerminal(os.Stderr) {
		c = zap.NewDevelopmentConfig()
		c.Development = false
	}
	c.Level = zap.NewAtomicLevelAt(least)
	c.Sampling = nil
	c.DisableCaller, c.DisableStacktrace = true, true
	c.EncoderConfig.EncodeTime = zapcore.ISO8601TimeEncoder
	c.EncoderConfig.EncodeDuration = zapcore.StringDurationEncoder
	return c.Build()
}
