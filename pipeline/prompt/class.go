package prompt

import (
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/session"
)

// laneKind returns what kind of lane a request belongs to.
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
func (w *Writer) settle(exchange *pipeline.Exchange, hint session.Hint, met int) {
	class := exchange.Class
	said := session.Compaction{Windows: class.Window + 1, Asked: class.Kind == client.Compaction}
	if class.Marker.Found() && class.Marker.Boundary < len(exchange.Digests) {
		said.Marker = exchange.Digests[class.Marker.Boundary].Identity
	}
	before := w.Resolver.Run(hint, exchange.Chain[0]).Note(said)
	exchange.Class = class.Settle(client.Known{
		Messages: met, Windows: before.Windows, Asked: before.Asked,
		Settled: class.Marker.Found() && before.Marker == said.Marker,
	})
}

// noteCompaction reports that a client asks for a summary or has just gone on
// from one.
func noteCompaction(exchange *pipeline.Exchange) {
	class := exchange.Class
	event := pipeline.Event{Module: "client", Reason: strings.TrimSpace(class.Client + " " + string(class.Trigger))}
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
