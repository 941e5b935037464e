package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"kata-device-plugin/test/kernel/wire"
)

type decoder = *json.Decoder

// encoder is used by several goroutines.
type encoder struct {
	mu  *sync.Mutex
	enc *json.Encoder
}

// patient reads from the port. Until the driver has heard that there is a host, the port is at its
// end.
type patient struct{ file *os.File }

func (p patient) Read(b []byte) (n int, err error) {
	for range 200 {
		if n, err = p.file.Read(b); !errors.Is(err, io.EOF) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return n, err
}

func newPort(f *os.File) *port {
	return &port{file: f, in: json.NewDecoder(patient{f}), out: encoder{mu: &sync.Mutex{}, enc: json.NewEncoder(f)}}
}

// send sends a line. When the host has gone, so has everybody who could be told.
func (p *port) send(l wire.Line) {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	if err := p.out.enc.Encode(l); err != nil {
		fmt.Fprintln(os.Stderr, "init: send to the host:", err)
	}
}

// qmp has QEMU do something.
func (p *port) qmp(command string, arguments map[string]any) error {
	c, err := json.Marshal(map[string]any{"execute": command, "arguments": arguments})
	if err != nil {
		return fmt.Errorf("encode %s for QEMU: %w", command, err)
	}
	p.send(wire.Line{Kind: wire.QMP, Command: c})
	var a wire.Answer
	if err := p.in.Decode(&a); err != nil {
		return fmt.Errorf("wait for QEMU's answer to %s: %w", command, err)
	}
	if a.Error != "" {
		return fmt.Errorf("have QEMU %s: %w", command, errors.New(a.Error))
	}
	return nil
}
