package preflight

import (
	"fmt"
	"slices"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/nodeconfig"
)

// opinion is what is said of a configuration: what is fine, what is wrong, or what would tell. It is empty
// where the question does not arise.
type opinion struct {
	fine, wrong, open string
	of                *nodeconfig.Kata
}

// eachConfig asks about the configurations that matter on each node.
func (s *survey) eachConfig(v *verdict, kind finding.Kind, ask func(*captured, *nodeconfig.Kata) opinion) {
	s.eachCapture(v, kataSettings, func(n *captured) {
		c := s.configs(n)
		var said, fine []opinion
		for _, k := range c.all {
			o := ask(n, k)
			o.of = k
			said = append(said, o)
			if o.fine != "" {
				fine = append(fine, o)
			}
		}
		lacks := len(c.lacks.tell)+len(c.lacks.findings) > 0
		switch {
		case c.how == everyRead:
			v.add(c.lacks)
			n.say(v, kind, said)
		case len(fine) > 0 && (c.how == someRead || len(fine) == len(said) && !lacks):
			n.say(v, kind, fine) // one that is right is enough
		case lacks: // what is not known may be right
			v.add(c.lacks)
		case len(fine) > 0:
			v.open(fmt.Sprintf("which configuration of Kata is read on node %s: %s is right, and others are not", n.name,
				fine[0].of.File))
		default:
			n.noneOf(v, kind, said)
		}
	})
}

// noneOf notes what counts where none is right. What is not known of one may make it right.
func (n *captured) noneOf(v *verdict, kind finding.Kind, said []opinion) {
	with := func(text func(opinion) string) []opinion {
		return slices.DeleteFunc(slices.Clone(said), func(o opinion) bool { return text(o) == "" })
	}
	wrong, open := with(func(o opinion) string { return o.wrong }), with(func(o opinion) string { return o.open })
	switch {
	case len(open) > 0:
		n.say(v, kind, open)
	case len(wrong) > 1:
		v.no(n.found(kind, "none of the %d configurations of Kata on node %s is right, for example %s: %s",
			len(wrong), n.name, wrong[0].of.File, wrong[0].wrong))
	case len(wrong) == 1:
		n.say(v, kind, wrong)
	default:
		n.say(v, kind, said[:1])
	}
}

// say notes opinions.
func (n *captured) say(v *verdict, kind finding.Kind, said []opinion) {
	for _, o := range said {
		where := fmt.Sprintf("%s of node %s", spelled(o.of), n.name)
		switch {
		case o.fine != "":
			v.yes(where + ": " + o.fine)
		case o.wrong != "":
			v.no(n.found(kind, "%s: %s", where, o.wrong))
		case o.open != "":
			v.open(o.open)
		default:
			v.open(fmt.Sprintf("a configuration of Kata on node %s that plugs devices before the VM starts", n.name))
		}
	}
}

// spelled is the file of a configuration, with those that are laid over it.
func spelled(k *nodeconfig.Kata) string {
	if len(k.Drops) == 0 {
		return k.File
	}
	return k.File + " with " + check.Few(k.Drops)
}
