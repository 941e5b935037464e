package collect

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// holders says whether a file is locked, and who says so in it: the name of whoever has locked a
// part of it to write is the line that begins there (package nodelock). The locks themselves are
// only asked for, in the kernel's list: to try one would be to take it for a moment.
func (n *node) holders(name string) (names []string, held bool, err error) {
	list, err := os.ReadFile(n.real("/proc/locks"))
	if err != nil {
		return nil, false, err
	}
	var st unix.Stat_t
	if err := unix.Lstat(n.real(name), &st); err != nil {
		return nil, false, fmt.Errorf("find the locks of %s: %w", name, err)
	}
	id := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	starts, held := locked(string(list), id)
	if len(starts) == 0 {
		return nil, held, nil
	}
	text, err := n.read(name, maxFile)
	if err != nil {
		return nil, held, err
	}
	for _, at := range starts {
		if at < len(text) {
			line, _, _ := bytes.Cut(text[at:], []byte("\n"))
			if holder := strings.TrimSpace(string(line)); holder != "" {
				names = append(names, holder)
			}
		}
	}
	return names, held, nil
}

// locked finds the open-file-description locks of a file in /proc/locks (fs/locks.c,
// lock_get_status), and where those to write begin. A line is
// "1: OFDLCK ADVISORY  WRITE -1 00:1a:1234 0 EOF".
func locked(list, id string) (starts []int, held bool) {
	for line := range strings.Lines(list) {
		f := strings.Fields(line)
		if len(f) != 8 || f[1] != "OFDLCK" || f[5] != id {
			continue
		}
		held = true
		if at, err := strconv.Atoi(f[6]); err == nil && at >= 0 && f[3] == "WRITE" {
			starts = append(starts, at)
		}
	}
	return starts, held
}
