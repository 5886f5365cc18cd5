package pipeline

import (
	"maps"
	"slices"

	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
)

// The places for a module's text.
const (
	PlacementTurn   = "turn"   // behind the newest user message
	PlacementSystem = "system" // behind the client's own system prompt
)

// InjectedType is the Type of an event that reports text put into a prompt.
const InjectedType = "injected"

// Fresh returns this exchange's inserts, which still have to be made durable. It drops inserts whose message
// has been rendered since.
func (e *Exchange) Fresh() []session.Insert {
	lasting := slices.IndexFunc(e.Lane.Inserts, func(insert session.Insert) bool { return insert.Number == 0 })
	if lasting < 0 {
		return nil
	}
	kept := slices.DeleteFunc(slices.Clone(e.Lane.Inserts[lasting:]), func(insert session.Insert) bool {
		if insert.Stands(e.Lane.Projection) {
			return false
		}
		e.uncount(&insert)
		return true
	})
	e.Lane.Inserts = append(slices.Clone(e.Lane.Inserts[:lasting]), kept...)
	return e.Lane.Inserts[lasting:]
}

// Withdraw removes the inserts of this exchange that could not be made durable, and reports their modules as
// failed.
func (e *Exchange) Withdraw(err error) {
	failed, size := map[string]bool{}, e.Size(e.Lane.Projection)
	e.Lane.Inserts = slices.DeleteFunc(slices.Clone(e.Lane.Inserts), func(insert session.Insert) bool {
		if insert.Number > 0 {
			return false
		}
		failed[insert.Module] = true
		return true
	})
	e.Report.After -= size - e.Size(e.Lane.Projection)
	e.Report.Injected = nil
	e.Report.Events = slices.DeleteFunc(e.Report.Events, func(event ReportEntry) bool {
		return event.Type == InjectedType
	})
	for i, module := range e.Report.Modules {
		if failed[module.Name] {
			e.Report.Modules[i].Outcome = Failed
		}
	}
	for _, module := range slices.Sorted(maps.Keys(failed)) {
		e.Report.Events = append(e.Report.Events, ReportEntry{
			Module: module, Type: "failed", Reason: err.Error(), FellBackTo: fallback(e.Lane.Projection),
		})
	}
}

// WithInserts returns pieces with the active inserts, and the members for those behind the system prompt.
// Only the exchange's own projection may render more than one message in a piece.
func (e *Exchange) WithInserts(pieces []wire.Piece) ([]wire.Piece, []wire.Member) {
	if len(e.Lane.Inserts) == 0 {
		return pieces, nil
	}
	byMessage := map[int][]*session.Insert{}
	for i := range e.Lane.Inserts {
		if insert := &e.Lane.Inserts[i]; insert.Stands(e.Lane.Projection) {
			byMessage[insert.Message] = append(byMessage[insert.Message], insert)
		}
	}
	pieces = e.withBlocks(pieces, byMessage)
	if len(byMessage[session.InSystem]) == 0 {
		return pieces, nil
	}
	said := e.Codec.Instruct(e.Body, textsOf(byMessage[session.InSystem]))
	if len(said.Messages) > 0 {
		pieces = withMessages(pieces, said)
	}
	if len(said.Member.Raw) > 0 {
		return pieces, []wire.Member{said.Member}
	}
	return pieces, nil
}

// withBlocks returns pieces with inserts in their messages.
func (e *Exchange) withBlocks(pieces []wire.Piece, inserts map[int][]*session.Insert) []wire.Piece {
	messages := slices.Sorted(maps.Keys(inserts))
	out := make([]wire.Piece, 0, len(pieces)+2*len(messages))
	for _, piece := range pieces {
		at, _ := slices.BinarySearch(messages, piece.From)
		for ; at < len(messages) && messages[at] < piece.To; at++ {
			message := messages[at]
			raw := piece.Raw
			if raw == nil {
				raw = e.Body.Element(message)
			}
			changed, err := e.Codec.Append(raw, textsOf(inserts[message])...)
			switch {
			case err != nil: // can't happen for equal content, which had a place at first
			case piece.Raw != nil:
				piece.Raw = changed
			default:
				out = append(out, wire.Piece{From: piece.From, To: message}, wire.Piece{From: message, To: message + 1, Raw: changed})
				piece.From = message + 1
			}
		}
		out = append(out, piece)
	}
	return out
}

// withMessages returns pieces with our messages after the first ones.
func withMessages(pieces []wire.Piece, said wire.Instruction) []wire.Piece {
	ours := wire.Piece{From: said.Behind, To: said.Behind, Raw: said.Messages}
	for i, piece := range pieces {
		switch {
		case said.Behind > piece.From && said.Behind >= piece.To:
			continue
		case said.Behind > piece.From && piece.Raw == nil:
			return slices.Replace(slices.Clone(pieces), i, i+1,
				wire.Piece{From: piece.From, To: said.Behind}, ours, wire.Piece{From: said.Behind, To: piece.To})
		}
		return slices.Insert(slices.Clone(pieces), i, ours)
	}
	return append(slices.Clip(pieces), ours)
}

// uncount removes an insert from the report.
func (e *Exchange) uncount(insert *session.Insert) {
	e.Report.Injected = maps.Clone(e.Report.Injected)
	if e.Report.Injected[insert.Module] -= insert.Count(); e.Report.Injected[insert.Module] <= 0 {
		delete(e.Report.Injected, insert.Module)
	}
}

func textsOf(inserts []*session.Insert) []string {
	texts := make([]string, len(inserts))
	for i, insert := range inserts {
		texts[i] = insert.Text
	}
	return texts
}
