package kubelet

import (
	"context"
	"io"
	"sync"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// verbosity is the level that operators raise kubelet to when devices go wrong.
// It includes each allocation.
const verbosity = 4

// logger makes a kubelet's own logger. Kubelet's code takes it from a context or
// an argument, so the process-wide klog is neither used nor configured. An older
// kubelet does use it; joinLog is for that.
func logger(to io.Writer, l *lines) klog.Logger {
	if to == nil {
		return logr.Discard()
	}
	return newLogger(l)
}

func newLogger(to io.Writer) klog.Logger {
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(to), textlogger.Verbosity(verbosity)))
}

// logInto gives a call to a server the server's logger.
func logInto(log klog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		return handle(klog.NewContext(ctx, log), request)
	}
}

// lines writes whole lines, one at a time, until it is ended. A test's log must
// not be written to after the test, and kubelet's goroutines may outlast it a bit.
type lines struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements io.Writer.
func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to == nil {
		return len(line), nil
	}
	return l.to.Write(line)
}

func (l *lines) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = nil
}
