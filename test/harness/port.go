package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Port waits until the plugin listens on one TCP port of IPv4, and returns its number. It is for a program that
// is told to take any, and does not say which: a port that a test finds free may be another's a moment later.
func (p *Plugin) Port(ctx context.Context) (int, error) {
	again := time.NewTicker(20 * time.Millisecond) // the kernel tells nobody of it
	defer again.Stop()
	for {
		port, err := p.port()
		if err == nil {
			return port, nil
		}
		select {
		case <-again.C:
		case <-p.exited:
			return 0, fmt.Errorf("wait for a port: the program has ended: %w", err)
		case <-ctx.Done():
			return 0, fmt.Errorf("wait for a port: %w", errors.Join(err, ctx.Err()))
		}
	}
}

// port finds the socket among those of the network that are the process's own.
func (p *Plugin) port() (int, error) {
	proc := fmt.Sprintf("/proc/%d/", p.PID())
	fds, err := os.ReadDir(proc + "fd")
	if err != nil {
		return 0, err
	}
	own := map[string]bool{} // inode numbers
	for _, fd := range fds {
		to, _ := os.Readlink(proc + "fd/" + fd.Name()) // it may be closed meanwhile
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			own[strings.TrimSuffix(inode, "]")] = true
		}
	}
	table, err := os.ReadFile(proc + "net/tcp")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(table)) {
		// As get_tcp4_sock in net/ipv4/tcp_ipv4.c prints it; 0A is TCP_LISTEN.
		const local, state, inode = 1, 3, 9
		f := strings.Fields(line)
		if len(f) <= inode || f[state] != "0A" || !own[f[inode]] {
			continue
		}
		_, port, _ := strings.Cut(f[local], ":")
		n, err := strconv.ParseUint(port, 16, 16)
		return int(n), err
	}
	return 0, errors.New("it listens on none yet")
}
