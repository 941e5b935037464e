package report

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/manifest"
)

// The parts of SARIF 2.1.0 that are written here. There are no fixes: which of two spellings is
// the right one is for people to say.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID      string      `json:"id"`
		Short   sarifText   `json:"shortDescription"`
		Help    sarifText   `json:"help"`
		Default sarifConfig `json:"defaultConfiguration"`
	}
	sarifConfig struct {
		Level string `json:"level"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations"`
		Related      []sarifLocation    `json:"relatedLocations,omitempty"`
		Fingerprints map[string]string  `json:"partialFingerprints"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
	}
	sarifLocation struct {
		ID       *int           `json:"id,omitempty"`
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
		Message  *sarifText     `json:"message,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		Line   int `json:"startLine"`
		Column int `json:"startColumn"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
		Kind string `json:"kind"`
	}
)

// SARIF writes findings in the form that reviews of code are annotated from.
func SARIF(w io.Writer, r *check.Result, tool Tool) error {
	driver := sarifDriver{Name: tool.Name, Version: tool.Version, Rules: []sarifRule{}}
	index := map[string]int{}
	for _, c := range check.Checks() {
		index[c.ID] = len(driver.Rules)
		driver.Rules = append(driver.Rules, sarifRule{c.ID, sarifText{c.Title}, sarifText{c.Remedy},
			sarifConfig{c.Severity.String()}})
	}
	results := []sarifResult{}
	for _, f := range r.Findings {
		results = append(results, sarifOf(f, index[f.ID]))
	}
	return write(w, sarifLog{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0",
		Runs: []sarifRun{{Tool: sarifTool{driver}, ColumnKind: "unicodeCodePoints", Results: results}},
	})
}

func sarifOf(f check.Finding, rule int) sarifResult {
	message := f.Message
	if f.Help != "" {
		message += "; " + f.Help
	}
	r := sarifResult{
		RuleID: f.ID, RuleIndex: rule, Level: f.Severity.String(), Message: sarifText{message},
		Fingerprints: map[string]string{"finding/v1": fingerprint(f)},
	}
	at := sarifLocation{Physical: physical(f.Place)}
	if f.Object != (check.Ref{}) {
		at.Logical = []sarifLogical{{strings.ReplaceAll(f.Object.String(), " ", "/"), "resource"}}
	}
	r.Locations = []sarifLocation{at}
	for i, rel := range f.Related {
		if p := physical(rel.Place); p != nil {
			r.Related = append(r.Related, sarifLocation{ID: new(i + 1), Physical: p, Message: &sarifText{rel.Text}})
		}
	}
	if f.Ignored != "" {
		r.Suppressions = []sarifSuppression{{"external", f.Ignored}}
	}
	return r
}

// physical is a place in a file. The standard input is none, nor is a cluster, whose objects
// have no lines.
func physical(p manifest.Place) *sarifPhysical {
	if p.Line == 0 || p.File == "-" {
		return nil
	}
	file := filepath.ToSlash(p.File)
	loc := &sarifPhysical{Artifact: sarifArtifact{(&url.URL{Path: file}).EscapedPath()}}
	if filepath.IsAbs(p.File) {
		loc.Artifact.URI = (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(file, "/")}).String()
	}
	loc.Region = &sarifRegion{p.Line, max(p.Column, 1)}
	return loc
}

// fingerprint tells a finding from others and stays when lines move: it is made of the ID,
// the object and the resource.
func fingerprint(f check.Finding) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{f.ID, f.Object.Kind, f.Object.Namespace, f.Object.Name, f.Resource},
		"\x00")))
	return hex.EncodeToString(sum[:16])
}
