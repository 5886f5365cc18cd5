package ipc

import (
	"palimpsest/pipeline/certificate"
	"palimpsest/pipeline/session"
)

// certify compares a projection with the originals that it stands for, and notes in it what it
// has kept.
func (p *planner) certify(projection *session.Projection) error {
	originals := certificate.NewOriginals()
	for _, t := range p.history.turns {
		if err := p.history.read(t); err != nil {
			return err
		}
		if t.From < projection.Covers {
			originals.Add(t.From, t.messages, t.calls())
		} else {
			originals.Follow(t.calls())
		}
	}
	projection.Certificate = certificate.Make(projection, originals)
	return nil
}

// reportCertificate tells what an epoch has kept of what must not be lost.
func (e *epoch) reportCertificate(report func(kind, reason string, counts map[string]int)) {
	kept := e.projection.Certificate
	if kept == nil {
		return
	}
	reason := Complete
	if !kept.IsComplete() {
		reason = Incomplete
	}
	all, inPrompt := 0, 0
	for i := range kept {
		all, inPrompt = all+kept[i].All, inPrompt+kept[i].InPrompt
	}
	report(Certified, reason, map[string]int{"all": all, "in_prompt": inPrompt, "missing": kept.Lost()})
}

// What the report of an exchange says of a compaction's certificate.
const (
	Certified  = "certified" // the kind of the entry
	Complete   = "complete"
	Incomplete = "incomplete"
)
