package capture

import (
	"fmt"
	"strconv"
	"strings"
)

// token is a word of a line: bare, quoted, or with a name before it.
type token struct {
	name   string // of an attribute
	text   string
	quoted bool
}

// split takes a line apart.
func split(line string) ([]token, error) {
	var all []token
	for rest := line; rest != ""; {
		var t token
		if rest[0] != '"' {
			if end := strings.IndexAny(rest, " \"="); end >= 0 && rest[end] == '=' {
				t.name, rest = rest[:end], rest[end+1:]
			}
		}
		if strings.HasPrefix(rest, `"`) {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return nil, fmt.Errorf("a quoted text that does not end, or is not as Go quotes one: %.60s", rest)
			}
			rest = rest[len(quoted):]
			t.quoted = true
			if t.text, err = strconv.Unquote(quoted); err != nil {
				return nil, fmt.Errorf("unquote %.60s: %w", quoted, err)
			}
		} else {
			t.text, _, _ = strings.Cut(rest, " ")
			rest = rest[len(t.text):]
			if t.text != "" && word(t.text) != t.text {
				return nil, fmt.Errorf("%.60q has to be quoted", t.text)
			}
		}
		if t == (token{}) || rest != "" && (rest[0] != ' ' || rest == " ") {
			return nil, fmt.Errorf("words are separated by one blank, and there is none at the end: %.60q", line)
		}
		rest = strings.TrimPrefix(rest, " ")
		all = append(all, t)
	}
	return all, nil
}

// fields hands out the words of a line in order, and keeps the first error.
type fields struct {
	words []token
	err   error
}

// next is the next word, a zero one where there is none.
func (l *fields) next() token {
	if len(l.words) == 0 || l.words[0].name != "" {
		return token{}
	}
	t := l.words[0]
	l.words = l.words[1:]
	return t
}

// word is the next word, which has to be there.
func (l *fields) word(what string) string {
	if len(l.words) == 0 || l.words[0].name != "" {
		l.fail(fmt.Errorf("the line ends before the %s", what))
		return ""
	}
	return l.next().text
}

func (l *fields) number(what string) int {
	text := l.word(what)
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		l.fail(fmt.Errorf("the %s is %q: want a number", what, text))
	}
	return int(n)
}

// attribute is the next word if it has that name, and "" otherwise.
func (l *fields) attribute(name string) string {
	if len(l.words) == 0 || l.words[0].name != name {
		return ""
	}
	text := l.words[0].text
	l.words = l.words[1:]
	return text
}

// optional is an attribute that is a number, 0 where there is none.
func (l *fields) optional(name string) int {
	text := l.attribute(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		l.fail(fmt.Errorf("%s is %q: want a number", name, text))
	}
	return int(n)
}

// flag says whether the next word is this one, and takes it.
func (l *fields) flag(name string) bool {
	if len(l.words) == 0 || l.words[0] != (token{text: name}) {
		return false
	}
	l.words = l.words[1:]
	return true
}

// end wants nothing to be left.
func (l *fields) end() error {
	if l.err == nil && len(l.words) > 0 {
		l.fail(fmt.Errorf("the line should end before %.60q", l.words[0].name+"="+l.words[0].text))
	}
	return l.err
}

func (l *fields) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}
