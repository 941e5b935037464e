package journal

import (
	"io"
	"log/slog"
)

// Logger is how the programs log: one JSON object a line.
func Logger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: utc}))
}

// utc keeps local time out of the log: the image has no time zones, and nodes that do
// would disagree.
func utc(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	}
	return a
}
