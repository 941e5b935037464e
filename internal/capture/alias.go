package capture

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// redactor knows the names that are to be replaced.
type redactor struct {
	salt  []byte
	uids  []string       // replaced wherever they are
	names *regexp.Regexp // replaced where they are words; nil for none
	fixed map[string]bool

	masker
	uuid, macName, qualified *regexp.Regexp
}

// alias is what stands for a name.
func (r *redactor) alias(name string) string {
	if name == "" {
		return ""
	}
	if r.uuid.FindString(name) == name {
		return r.always(name)
	}
	return "name-" + r.digest(name)[:10]
}

func (r *redactor) digest(s string) string {
	h := hmac.New(sha256.New, r.salt)
	h.Write([]byte(s)) // a hash takes everything
	return hex.EncodeToString(h.Sum(nil))
}

// always replaces what is replaced wherever it is: UUIDs keep their form, and so do interfaces.
func (r *redactor) always(s string) string {
	if len(s) < 8 {
		return s
	}
	for _, uid := range r.uids {
		s = strings.ReplaceAll(s, uid, "uid-"+r.digest(uid)[:20])
	}
	s = r.macName.ReplaceAllStringFunc(s, func(name string) string { return "enx" + r.digest(name)[:12] })
	return r.uuid.ReplaceAllStringFunc(s, func(id string) string {
		d := r.digest(strings.ToLower(id))
		return strings.Join([]string{d[:8], d[8:12], d[12:16], d[16:20], d[20:32]}, "-")
	})
}

// free replaces names in a text that may say anything, but for the names of resources.
func (r *redactor) free(s string) string { return r.spoken(r.always(s)) }

// spoken replaces the names in such a text. What is always replaced has been.
func (r *redactor) spoken(s string) string {
	s = r.masker.text(s)
	if r.names == nil {
		return s
	}
	var b strings.Builder
	last := 0
	for _, at := range r.qualified.FindAllStringIndex(s, -1) {
		b.WriteString(r.words(s[last:at[0]]))
		b.WriteString(s[at[0]:at[1]])
		last = at[1]
	}
	b.WriteString(r.words(s[last:]))
	return b.String()
}

// words replaces names that are not a part of a longer word. A dash ends a word, and so the
// node's name is found in that of its static pods.
func (r *redactor) words(s string) string { return r.names.ReplaceAllStringFunc(s, r.alias) }
