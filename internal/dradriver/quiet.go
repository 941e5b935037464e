package dradriver

import (
	"context"
	"log/slog"
)

// quiet is a log without what libraries have to say while all is well.
type quiet struct{ slog.Handler }

// Enabled is true for warnings and errors.
func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.Handler.Enabled(ctx, l)
}

// WithAttrs and WithGroup stay quiet.
func (q quiet) WithAttrs(a []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(a)} }

// WithGroup is of slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
