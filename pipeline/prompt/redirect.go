package prompt

import (
	"strings"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
)

// Heat returns the state of the provider's cache for the lane's newest prompt before this one.
func (p *Prompt) Heat() session.CacheState { return p.earlier.heat }

// IsBound reports whether only one account can answer the prompt: it continues state that the provider holds,
// or contains content that only the original account can read.
func (p *Prompt) IsBound() bool {
	exchange := p.Exchange
	if exchange == nil || exchange.Request.Refers || exchange.Request.Resumes || exchange.Request.Repeats {
		return exchange != nil
	}
	for digest := range p.verbatim() {
		if digest.Flags&conversation.HasOpaque != 0 {
			return true
		}
	}
	return false
}

// Redirect sends a prompt to another destination than it was written for. The bytes stay the same. Its cost
// uses the new destination's prices, and no cache hits are expected unless the lane's newest prompt went to
// the same account.
func (w *Writer) Redirect(p *Prompt, to Destination, overrides tokens.Overrides) {
	request := Request{Destination: to, Overrides: overrides, Long: p.account.isLong}
	own := w.provided(request, p.Exchange.Request.Model)
	p.account.key, p.account.region, p.account.own, p.account.overrides = to.Key, to.Region, own, overrides
	for i, name := range p.account.billing.Models {
		p.account.others[i] = w.provided(request, name)
	}
	p.Exchange.Model.Price = own.On(p.account.terms(p.account.billing.Served))
	p.account = w.account(p)
}

// laneKind returns the kind of lane that a request belongs to.
func laneKind(class client.Class) session.Kind {
	switch {
	case class.IsSide():
		return session.Side
	case class.Agent || class.Kind == client.Subagent:
		return session.Subagent
	default:
		return session.Main
	}
}

// settle decides whether a request is the first after its client compacted
// itself. met is how many of its messages an earlier request had.
func (w *Writer) settle(exchange *pipeline.Exchange, hint session.Hint, lane *session.Lane, met int) {
	class := exchange.Class
	said := session.Compaction{Windows: class.Window + 1, Asked: class.Kind == client.Compaction}
	if class.Marker.Found() && class.Marker.Boundary < len(exchange.Conversation.Digests) {
		said.Marker = exchange.Conversation.Digests[class.Marker.Boundary].Identity
	}
	run := w.Resolver.Run(exchange.Scope, hint)
	before := run.Note(said)
	exchange.Class = class.Finalize(client.Known{
		Messages: met, Windows: before.Windows, Asked: before.Asked,
		Finalized: class.Marker.Found() && before.Marker == said.Marker,
	})
	exchange.Lane.Left = left(run, exchange, hint, lane, met)
}

// left returns the history that a request leaves behind: its run's previous lane if the request opens a new
// lane without any of that lane's answers. If the client names no session, only its first request after its
// own summary leaves one.
func left(run *session.Run, exchange *pipeline.Exchange, hint session.Hint, lane *session.Lane, met int) session.Left {
	length := len(exchange.Conversation.Digests)
	switch {
	case hint.Name == "" && exchange.Class.Kind == client.AfterCompaction && lane.Kind == session.Main:
		return session.Left{Session: lane.Session, Lane: lane.ID, Kind: lane.Kind, Unnamed: true}
	case hint.Name == "":
		return session.Left{}
	case exchange.Class.Kind == client.Compaction && lane.Ancestry.Parent != uuid.Nil && lane.Ancestry.ForkAt > 0:
		if _, messages := run.Went(uuid.Nil, 0); length > messages {
			run.Went(lane.ID, length) // its messages include everything since the conversation's newest request
		}
		return session.Left{}
	case exchange.Class.IsSide():
		return session.Left{}
	}
	from, messages := run.Went(lane.ID, length)
	if lane.Assumed || from == lane.ID || met > 0 && exchange.Class.Kind != client.AfterCompaction {
		return session.Left{}
	}
	return session.Left{Session: lane.Session, Lane: lane.ID, Kind: lane.Kind, From: from, Messages: messages}
}

// noteCompaction reports that a client asks for a summary or has just gone on
// from one.
func noteCompaction(exchange *pipeline.Exchange) {
	class := exchange.Class
	event := pipeline.ReportEntry{Module: "client", Reason: strings.TrimSpace(class.Client + " " + string(class.Trigger))}
	switch class.Kind {
	case client.Compaction:
		event.Type = "compaction"
	case client.AfterCompaction:
		event.Type = "after_compaction"
		if class.Marker.Found() {
			event.Counts = map[string]int{"boundary": class.Marker.Boundary}
		}
	default:
		return
	}
	exchange.Report.Events = append(exchange.Report.Events, event)
}
