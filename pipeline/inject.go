package pipeline

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
)

// Where a module's text can be put.
const (
	PlacementTurn   = "turn"   // behind the newest message of the user
	PlacementSystem = "system" // behind the client's own system prompt
)

// InjectedType is the Type of an event that tells of text that was put into a prompt.
const InjectedType = "injected"

// Inject puts text into the prompt: at the newest message of the user, which the
// provider must not have seen yet (PlacementTurn), or behind the system prompt
// (PlacementSystem). items are what the text holds. It stays there in every later
// request of the lane. It is false, and nothing is done, if there is no such place,
// if the history must not be edited, if the request stands beside the conversation,
// or if the prompt would exceed its Limit.
func (e *Exchange) Inject(module, placement, text string, items []string) (injected bool) {
	if text = plain(text); e.Settled || e.Request.Frozen != "" || e.Class.IsSide() || strings.TrimSpace(text) == "" {
		return false
	}
	insert := session.Insert{Message: session.InSystem, Module: module, Text: text}
	if placement != PlacementSystem {
		place, found := e.place(text)
		if !found {
			return false
		}
		insert.Message = place
	}
	insert.Chain, insert.Tokens = e.Chain[insert.Message+1], e.CountText(text)
	size := e.Size(e.Projection)
	if e.Limit > 0 && size+e.scale(insert.Tokens)+1 > e.Limit {
		return false
	}
	for _, item := range items {
		insert.Items = append(insert.Items, plain(item))
	}
	e.Inserts = append(slices.Clip(e.Inserts), insert)
	e.Report.After += e.Size(e.Projection) - size
	injections := maps.Clone(e.Report.Injected)
	if injections == nil {
		injections = map[string]int{}
	}
	injections[module] += insert.Count()
	e.Report.Injected = injections
	e.Report.Events = append(e.Report.Events, Event{
		Module: module, Type: InjectedType, Reason: cmp.Or(placement, PlacementTurn),
		Counts: map[string]int{"items": insert.Count(), "tokens": insert.Tokens},
	})
	return true
}

// Injected returns what a module has put into the lane's history, those of this
// exchange last, whether it is still in the prompt or folded by an epoch.
func (e *Exchange) Injected(module string) []session.Insert {
	var own []session.Insert
	for _, insert := range e.Inserts {
		if insert.Module == module {
			own = append(own, insert)
		}
	}
	return own
}

// Added returns the o200k tokens of the inserts at messages from index from to to
// (excluded), whatever stands for these; of the pointers, those that stand.
func (e *Exchange) Added(from, to int) int {
	sum := 0
	for i := range e.Inserts {
		insert := &e.Inserts[i]
		if from <= insert.Message && insert.Message < to && (!insert.IsPointer() || insert.Stands(e.Projection)) {
			sum += insert.Tokens
		}
	}
	return sum
}

// Inserted returns the o200k tokens of all inserts that are in the prompt if
// projection, which may be nil, stands for the first messages.
func (e *Exchange) Inserted(projection *session.Projection) int {
	sum := 0
	for i := range e.Inserts {
		if e.Inserts[i].Stands(projection) {
			sum += e.Inserts[i].Tokens
		}
	}
	return sum
}

// Fresh returns the inserts of this exchange, which are not durable yet. One whose
// message was rendered since it was put there is taken out.
func (e *Exchange) Fresh() []session.Insert {
	lasting := slices.IndexFunc(e.Inserts, func(insert session.Insert) bool { return insert.Number == 0 })
	if lasting < 0 {
		return nil
	}
	kept := slices.DeleteFunc(slices.Clone(e.Inserts[lasting:]), func(insert session.Insert) bool {
		if insert.Stands(e.Projection) {
			return false
		}
		e.uncount(&insert)
		return true
	})
	e.Inserts = append(slices.Clone(e.Inserts[:lasting]), kept...)
	return e.Inserts[lasting:]
}

// Withdraw takes the inserts of this exchange out again, which could not be made
// durable, and reports their modules as failed.
func (e *Exchange) Withdraw(err error) {
	failed, size := map[string]bool{}, e.Size(e.Projection)
	e.Inserts = slices.DeleteFunc(slices.Clone(e.Inserts), func(insert session.Insert) bool {
		if insert.Number > 0 {
			return false
		}
		failed[insert.Module] = true
		return true
	})
	e.Report.After -= size - e.Size(e.Projection)
	e.Report.Injected = nil
	e.Report.Events = slices.DeleteFunc(e.Report.Events, func(event Event) bool {
		return event.Type == InjectedType || event.Type == PointedType
	})
	for i, module := range e.Report.Modules {
		if failed[module.Name] {
			e.Report.Modules[i].Outcome = Failed
		}
	}
	for _, module := range slices.Sorted(maps.Keys(failed)) {
		e.Report.Events = append(e.Report.Events, Event{
			Module: module, Type: "failed", Reason: err.Error(), FellBackTo: standing(e.Projection),
		})
	}
}

// uncount takes an insert out of the report.
func (e *Exchange) uncount(insert *session.Insert) {
	if insert.IsPointer() {
		e.unpoint()
		return
	}
	e.Report.Injected = maps.Clone(e.Report.Injected)
	if e.Report.Injected[insert.Module] -= insert.Count(); e.Report.Injected[insert.Module] <= 0 {
		delete(e.Report.Injected, insert.Module)
	}
}

// WithInserts returns pieces, of which none but the exchange's own projection
// renders more than one message, with the inserts that stand, and the members that
// hold those behind the system prompt.
func (e *Exchange) WithInserts(pieces []wire.Piece) ([]wire.Piece, []wire.Member) {
	if len(e.Inserts) == 0 {
		return pieces, nil
	}
	standing := map[int][]*session.Insert{}
	for i := range e.Inserts {
		if insert := &e.Inserts[i]; insert.Stands(e.Projection) {
			standing[insert.Message] = append(standing[insert.Message], insert)
		}
	}
	pieces = e.withBlocks(pieces, standing)
	if len(standing[session.InSystem]) == 0 {
		return pieces, nil
	}
	said := e.Codec.Instruct(e.Body, appended(standing[session.InSystem]))
	if len(said.Messages) > 0 {
		pieces = withMessages(pieces, said)
	}
	if len(said.Member.Raw) > 0 {
		return pieces, []wire.Member{said.Member}
	}
	return pieces, nil
}

// withBlocks returns pieces with inserts in the messages that they belong to.
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
			changed, err := e.holding(raw, inserts[message])
			switch {
			case err != nil: // it had a place when it came first: the same content has one
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

// WithInsertsAt returns a message as the client sent it, with what modules have put behind it.
func (e *Exchange) WithInsertsAt(message int) json.RawMessage {
	raw := e.Body.Element(message)
	var texts []string
	for i := range e.Inserts {
		if e.Inserts[i].Message == message && !e.Inserts[i].IsPointer() {
			texts = append(texts, e.Inserts[i].Text)
		}
	}
	if len(texts) == 0 {
		return raw
	}
	longer, err := e.Codec.Append(raw, texts...)
	if err != nil {
		return raw
	}
	return longer
}

// withMessages returns pieces with our messages behind the first ones.
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

// Seen returns how many of the messages the lane's last prompt had.
func (e *Exchange) Seen() int {
	if e.Heat.At.IsZero() {
		return 0
	}
	return e.Heat.Position
}

// place returns the newest message of the user, if the provider has not seen it, it
// takes a text, and no compaction of the provider's own stands for it.
func (e *Exchange) place(text string) (message int, found bool) {
	for i := len(e.Digests) - 1; i >= e.Seen(); i-- {
		digest := &e.Digests[i]
		if digest.Role == conversation.Assistant && digest.Flags.Has(conversation.IsPinned) {
			return 0, false
		}
		if digest.Role != conversation.User || digest.Flags.Has(conversation.IsPinned) {
			continue
		}
		_, err := e.Codec.Append(e.Body.Element(i), text)
		return i, err == nil && e.Projection.Keeps(i)
	}
	return 0, false
}

// addedBytes returns by how many bytes the inserts make the body longer. That pointers make
// it shorter does not count: of what is too heavy, text is the least.
func (e *Exchange) addedBytes(projection *session.Projection) int {
	bytes := 0
	for i := range e.Inserts {
		if insert := &e.Inserts[i]; !insert.IsPointer() && insert.Stands(projection) {
			bytes += len(wire.Quote(insert.Text)) + len(`,{"type":"text","text":}`)
		}
	}
	return bytes
}

// plain returns text that every store and every provider takes as it is.
func plain(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
}
