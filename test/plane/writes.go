//go:build !kubernetes134

package plane

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// rules make the API server note each request that writes, when it comes and when it is
// answered.
const rules = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [ResponseStarted]
rules:
- {level: Metadata, verbs: [create, update, patch, delete, deletecollection]}
- {level: None}
`

// Write is a request to the API server that writes, successful or not.
type Write struct {
	Verb      string
	Resource  string // with the subresource, such as resourceclaims/status
	Namespace string
	Name      string // empty for one that the server has named, and for a collection
	Agent     string // the client's User-Agent
	User      string // who it acted as; the impersonator until it is answered
	Code      int32  // HTTP status, 0 until it is answered
}

// String is the write in a line.
func (w Write) String() string {
	return fmt.Sprintf("%s %s %s/%s by %s (%s): %d", w.Verb, w.Resource, w.Namespace, w.Name, w.User, w.Agent, w.Code)
}

func (p *Plane) audit() string { return filepath.Join(p.dir, "audit.log") }

func (p *Plane) policy() error {
	if err := os.WriteFile(filepath.Join(p.dir, "audit.yaml"), []byte(rules), 0o600); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}
	return nil
}

// Writes are the writes to a resource since the start, in the order in which they came. A
// request is among them before its client has the answer.
func (p *Plane) Writes(t testing.TB, resource string) []Write {
	t.Helper()
	log, err := os.ReadFile(p.audit())
	if err != nil {
		t.Fatalf("read the audit log: %v", err)
	}
	var list []Write
	at := map[types.UID]int{}
	for line := range bytes.Lines(log) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		var e auditv1.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("read the audit log: %v: %s", err, line)
		}
		w := writeOf(&e)
		if w.Resource != resource {
			continue
		}
		if i, again := at[e.AuditID]; again {
			list[i] = w
			continue
		}
		at[e.AuditID] = len(list)
		list = append(list, w)
	}
	return list
}

func writeOf(e *auditv1.Event) Write {
	w := Write{Verb: e.Verb, Agent: e.UserAgent, User: e.User.Username}
	if o := e.ObjectRef; o != nil {
		w.Resource, w.Namespace, w.Name = o.Resource, o.Namespace, o.Name
		if o.Subresource != "" {
			w.Resource += "/" + o.Subresource
		}
	}
	if e.ImpersonatedUser != nil {
		w.User = e.ImpersonatedUser.Username
	}
	if e.ResponseStatus != nil {
		w.Code = e.ResponseStatus.Code
	}
	return w
}
