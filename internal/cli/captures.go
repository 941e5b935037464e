package cli

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"kata-device-plugin/internal/capture"
)

// captureBegin is how a captured node begins.
const captureBegin = "katacontainers.io/capture "

// captureSuffix is by what captures are found in directories, in which there may be anything.
const captureSuffix = ".snapshot"

// inputs are the arguments of a command that looks at files, told apart by what is in them.
type inputs struct {
	captures []origin
	paths    []string // of manifests, and of directories with them
	// pipes are those of the paths that give what is in them only once. Their beginning was looked at.
	pipes map[string]io.ReadCloser
	// nodes is how many of the paths are directories that need no manifest: there are captured nodes in them.
	nodes int
	// stdin is what is left of the standard input, nil where it was not looked at.
	stdin io.Reader
}

// readInputs takes the captured nodes out of what is to be looked at, and reads them: files that begin as
// such, and those in directories that are called so.
func readInputs(args []string, stdin io.Reader) (*inputs, error) {
	in := &inputs{pipes: map[string]io.ReadCloser{}}
	for _, arg := range args {
		_, again := in.pipes[arg]
		if again || arg == "-" && in.stdin != nil {
			continue // it has nothing to give a second time
		}
		info, err := os.Stat(arg)
		switch {
		case arg == "-" && stdin != nil:
			err = in.standard(stdin)
		case arg == "-" || err != nil: // whoever reads it says what is wrong
			in.paths = append(in.paths, arg)
			continue
		case info.IsDir():
			err = in.directory(arg)
		default:
			err = in.file(arg, info.Mode().IsRegular())
		}
		if err != nil {
			return nil, unusable(err, "")
		}
	}
	return in, nil
}

// directory finds the captured nodes in a directory.
func (in *inputs) directory(dir string) error {
	in.paths = append(in.paths, dir)
	before := len(in.captures)
	defer func() {
		if len(in.captures) > before {
			in.nodes++
		}
	}()
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != captureSuffix {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(in.capture(path, f), f.Close())
	})
}

// standard looks how the standard input begins, and reads it if it is a capture.
func (in *inputs) standard(stdin io.Reader) error {
	all := bufio.NewReader(stdin)
	in.stdin = all
	is, err := isCapture(all)
	switch {
	case err != nil:
		return fmt.Errorf("read standard input: %w", err)
	case is:
		return in.capture("-", all)
	}
	in.paths = append(in.paths, "-")
	return nil
}

// isCapture looks how a text begins. What is too short is none.
func isCapture(text *bufio.Reader) (bool, error) {
	begin, err := text.Peek(len(captureBegin))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return string(begin) == captureBegin, err
}

// file opens a file once, looks how it begins, and reads it if it is a capture. One that can be opened again
// is left to whoever reads manifests.
func (in *inputs) file(path string, again bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	all := bufio.NewReader(f)
	is, err := isCapture(all)
	switch {
	case err != nil:
		return errors.Join(err, f.Close())
	case is:
		return errors.Join(in.capture(path, all), f.Close())
	}
	in.paths = append(in.paths, path)
	if again {
		return f.Close()
	}
	in.pipes[path] = pipe{all, f}
	return nil
}

func (in *inputs) capture(path string, from io.Reader) error {
	sum, size := sha256.New(), counter(0)
	c, err := capture.Read(io.TeeReader(from, io.MultiWriter(sum, &size)))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	in.captures = append(in.captures, origin{path: path, capture: c, bytes: int64(size), sha256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// counter counts what is written.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// pipe is a file of which a part was read ahead.
type pipe struct {
	io.Reader
	io.Closer
}
