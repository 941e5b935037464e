package main

import (
	"bytes"
	"fmt"
	"strings"
)

// place is where the table goes.
const place = "<!-- values -->\n"

// writeReadme puts the table of values into the words that a person has written.
func writeReadme(words []byte, values []*value) ([]byte, error) {
	before, after, ok := bytes.Cut(words, []byte(place))
	if !ok {
		return nil, fmt.Errorf("README.md.gotmpl has no line %q, where the table of values goes", strings.TrimSpace(place))
	}
	var out bytes.Buffer
	out.WriteString("<!-- Made from README.md.gotmpl and values.yaml by make chart-docs. -->\n")
	out.Write(before)
	for _, v := range values {
		if v.children != nil {
			continue
		}
		if err := row(&out, v); err != nil {
			return nil, err
		}
	}
	for _, v := range values {
		if v.children == nil {
			continue
		}
		fmt.Fprintf(&out, "\n### %s\n\n| value | default | |\n| --- | --- | --- |\n", v.key)
		if err := rows(&out, v.children); err != nil {
			return nil, err
		}
	}
	out.Write(after)
	return out.Bytes(), nil
}

// rows writes the values of a group and of the groups in it.
func rows(out *bytes.Buffer, values []*value) error {
	for _, v := range values {
		err := rows(out, v.children)
		if v.children == nil {
			err = row(out, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func row(out *bytes.Buffer, v *value) error {
	text, err := v.defaultText()
	if err != nil {
		return err
	}
	words := v.words
	if v.enum != nil {
		words += " One of " + strings.Join(v.enum, ", ") + "."
	}
	if v.flags != nil {
		words += " Taken are `--" + strings.Join(v.flags, "`, `--") + "`."
	}
	fmt.Fprintf(out, "| `%s` | `%s` | %s |\n", v.path, strings.ReplaceAll(text, "|", `\|`), strings.ReplaceAll(words, "|", `\|`))
	return nil
}
