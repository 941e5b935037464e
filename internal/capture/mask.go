package capture

import (
	"net/netip"
	"regexp"
	"strings"
)

// What stands for addresses that nobody needs to know.
const (
	maskedMAC = "xx:xx:xx:xx:xx:xx"
	maskedIP  = "x.x.x.x"
)

// Mask takes the addresses of networks out of a capture: MACs, and IPs of both families. It is
// for whoever makes one, before it is shared. What is below /sys and /dev has none but in names.
func Mask(c *Capture) {
	m := newMasker()
	for i := range c.Missing {
		c.Missing[i].Why = m.text(c.Missing[i].Why)
	}
	c.LinksErr = m.text(c.LinksErr)
	for _, e := range c.entries {
		if e.Failure != nil {
			failure := *e.Failure
			failure.Text = m.text(failure.Text)
			e.Failure = &failure
		}
		if isHardware(e.Path) {
			continue
		}
		e.Text, e.State = m.bytes(e.Text), m.text(e.State)
	}
}

// isHardware says whether a path is one that the kernel gives to what it has found.
func isHardware(name string) bool {
	return strings.HasPrefix(name, "/sys/") || strings.HasPrefix(name, "/dev/")
}

// masker finds addresses.
type masker struct{ macs, words *regexp.Regexp }

func newMasker() masker {
	return masker{
		// Hardware addresses of 6 bytes, of 8 as GUIDs have, and of 20 as IP over InfiniBand has.
		// What is part of a longer word is none.
		macs: regexp.MustCompile(`(?i)(^|[^0-9a-z:.-])` +
			`(?:[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5,19}|[0-9a-f]{4}(?::[0-9a-f]{4}){3})\b`),
		// Words that may have an IP in them.
		words: regexp.MustCompile(`[0-9A-Za-z_.:-]*[.:][0-9A-Za-z_.:-]*`),
	}
}

// bytes keeps nil, which is an empty file's text as well.
func (m masker) bytes(text []byte) []byte {
	if len(text) == 0 {
		return text
	}
	return []byte(m.text(string(text)))
}

func (m masker) text(s string) string {
	if !strings.ContainsAny(s, ":.-") {
		return s
	}
	s = m.macs.ReplaceAllString(s, "${1}"+maskedMAC)
	return m.words.ReplaceAllStringFunc(s, maskIPs)
}

// maskIPs masks a word that is an IP, with a port or without, and the IPv4s between the colons
// and dashes of one that is not. PCI addresses and versions are no IPs.
func maskIPs(word string) string {
	for _, whole := range []string{word, strings.TrimRight(word, ".:-")} {
		if _, err := netip.ParseAddr(whole); err == nil && strings.Trim(whole, ":") != "" {
			return maskedIP + word[len(whole):]
		}
		if _, err := netip.ParseAddrPort(whole); err == nil {
			return maskedIP + word[strings.LastIndexByte(whole, ':'):]
		}
	}
	var b strings.Builder
	for rest := word; rest != ""; {
		end := strings.IndexAny(rest, ":-_")
		if end < 0 {
			end = len(rest)
		}
		part := rest[:end]
		number := strings.TrimRight(part, ".")
		if a, err := netip.ParseAddr(number); err == nil && a.Is4() {
			part = maskedIP + part[len(number):]
		}
		b.WriteString(part)
		b.WriteString(rest[end:min(end+1, len(rest))])
		rest = rest[min(end+1, len(rest)):]
	}
	return b.String()
}
