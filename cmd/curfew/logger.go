package main

import (
	"context"
	"fmt"
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger writes to stderr: one JSON object a line, or columns for a person. Nothing is sampled
// away. level and format are values of LOG_LEVEL and LOG_FORMAT.
func newLogger(level, format string) (*zap.Logger, error) {
	least, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, err
	}
	c := zap.NewProductionConfig()
	if format == "console" || format == "auto" && isTerminal(os.Stderr) {
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

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// redisLogger makes go-redis, which writes to stderr by itself, speak through log. It says the same of
// each attempt to connect; the monitor says once that Redis is away, so this is for debugging.
type redisLogger struct{ log *zap.Logger }

func (l redisLogger) Printf(_ context.Context, format string, v ...any) {
	if l.log.Core().Enabled(zap.DebugLevel) {
		l.log.Debug(fmt.Sprintf(format, v...))
	}
}
