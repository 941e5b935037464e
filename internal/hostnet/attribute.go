package hostnet

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var errShort = errors.New("message is too short")

// attributes calls each for every attribute of a message (struct nlattr in
// include/uapi/linux/netlink.h), without the flags that its type may carry.
func attributes(b []byte, each func(kind uint16, value []byte) error) error {
	const (
		header = 4
		flags  = 0xc000 // NLA_F_NESTED and NLA_F_NET_BYTEORDER
	)
	for len(b) > 0 {
		if len(b) < header {
			return fmt.Errorf("%w: %d bytes after the last attribute", errShort, len(b))
		}
		size := int(binary.NativeEndian.Uint16(b))
		kind := binary.NativeEndian.Uint16(b[2:]) &^ flags
		if size < header || size > len(b) {
			return fmt.Errorf("attribute %d has %d of %d bytes: %w", kind, size, len(b), errShort)
		}
		if err := each(kind, b[header:size]); err != nil {
			return fmt.Errorf("attribute %d: %w", kind, err)
		}
		b = b[min((size+3)&^3, len(b)):] // the next one is aligned
	}
	return nil
}

// number reads an attribute of 32 bits.
func number(value []byte) (uint32, error) {
	if len(value) < 4 {
		return 0, fmt.Errorf("%w: a number of %d bytes", errShort, len(value))
	}
	return binary.NativeEndian.Uint32(value), nil
}

// index reads an attribute that is an ifindex.
func index(value []byte) (int, error) {
	n, err := number(value)
	return int(n), err
}
