package ipc

import (
	"fmt"
	"slices"
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
)

const (
	// leastRepeating is the minimum of o200k tokens of a result that may be shortened to a pointer.
	leastRepeating = 1000
	// leastSource is the minimum of bytes of a result that a pointer may refer to.
	leastSource = 1000
	// leastRun is the minimum of bytes of adjacent lines that a pointer replaces.
	leastRun = 160
	// leastPointed is the share of a result that must repeat the earlier one.
	leastPointed = 0.3
	// leastPointedTokens is how many tokens a pointer must save.
	leastPointedTokens = 300
	// placesOfLine bounds at how many places of the earlier result a line is looked for.
	placesOfLine = 8
)

// point puts pointers in place of the newest tool results whose lines an earlier result in the
// prompt has word for word (ipc.repeats). Its decisions become part of the lane and are made once:
// it only looks at results that the provider has not seen.
func (m *Module) point(draft *pipeline.Draft) error {
	exchange := &draft.View
	if !mayPoint(exchange) {
		return nil
	}
	first := len(exchange.Digests)
	for first > 0 && exchange.Digests[first-1].Role != conversation.Assistant {
		first--
	}
	r := &repeats{exchange: exchange, draft: draft, count: m.count, first: first}
	for i := max(first, exchange.LastLength()); i < len(exchange.Digests); i++ {
		// A pointer's lines are stored. A result with personal data would lose it before it is read
		// once.
		if mayShow(exchange, i) && exchange.Digests[i].Tokens >= leastRepeating && !exchange.IsRedacted(i) {
			if err := r.message(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// mayPoint reports whether the prompt may get new pointers.
func mayPoint(exchange *pipeline.View) bool {
	config := new(configOf(exchange))
	return config.Repeats == RepeatsPoint && config.DeepestLevel > 0 && config.ArchiveToBlob &&
		!exchange.Finalized && exchange.Request.ReadOnly == "" && !exchange.Request.TakesOut &&
		!exchange.Class.IsSide() && exchange.Class.Kind != client.Compaction
}

// mayShow reports whether a message has plain tool results that are sent unchanged.
func mayShow(exchange *pipeline.View, message int) bool {
	const other = conversation.HasMedia | conversation.HasOpaque | conversation.LoadsTools | conversation.IsPinned
	flags := exchange.Digests[message].Flags
	return flags.Has(conversation.HasResult) && !flags.Has(other) && exchange.Projection.Keeps(message)
}

// repeats looks for results in one exchange that repeat earlier ones.
type repeats struct {
	exchange *pipeline.View // of draft
	draft    *pipeline.Draft
	count    func(conversation.Message) int
	first    int // first message after the newest answer

	calls   map[string]ledger.Call // of the newest answer; nil until read
	earlier []shown                // results that a pointer may refer to, the oldest first
	isRead  bool                   // earlier is complete
}

// shown is an earlier result in the prompt.
type shown struct {
	message int
	id      string // of its call
	lines   []string
}

// message puts pointers into a message if its results repeat earlier ones.
func (r *repeats) message(index int) error {
	message, err := r.exchange.Message(index)
	if err != nil {
		return err
	}
	for i := range message.Blocks {
		block := &message.Blocks[i]
		if !r.isLong(block) || r.exchange.Points(index, i) {
			continue
		}
		may, err := r.mayRepeat(block.ID)
		if err == nil && may {
			err = r.result(index, i, message)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isLong reports whether a block is a result large enough for a pointer.
func (r *repeats) isLong(block *conversation.Block) bool {
	return block.Kind == conversation.ToolResult && !block.IsUnread &&
		len(block.Text) >= leastRepeating && // each token has at least one byte
		r.exchange.CountText(block.Text) >= leastRepeating
}

// mayRepeat reports whether the result of a call may become a pointer. Calls that read or change
// files may not, because the model edits and quotes the file's newest view.
func (r *repeats) mayRepeat(id string) (bool, error) {
	if r.calls == nil {
		r.calls = map[string]ledger.Call{}
		for i := r.first - 1; i >= 0 && r.exchange.Digests[i].Role == conversation.Assistant; i-- {
			message, err := r.exchange.Message(i)
			if err != nil {
				return false, err
			}
			for j := range message.Blocks {
				if block := &message.Blocks[j]; block.Kind == conversation.ToolCall && !block.IsUnread {
					r.calls[block.ID] = ledger.ParseCall(block)
				}
			}
		}
	}
	call, known := r.calls[id]
	return known && len(call.Reads) == 0 && len(call.Writes) == 0, nil
}

// look reads the earlier results that a pointer may refer to: those that are sent unchanged, after
// a provider's compaction.
func (r *repeats) look() error {
	if r.isRead {
		return nil
	}
	r.isRead = true
	from := 1 + slices.IndexFunc(r.exchange.Digests, isBoundary)
	for i := from; i < r.first; i++ {
		if isBoundary(r.exchange.Digests[i]) {
			r.earlier = nil
			continue
		}
		if !mayShow(r.exchange, i) || r.exchange.Digests[i].Tokens < leastSource/8 {
			continue
		}
		message, err := r.exchange.Message(i)
		if err != nil {
			return err
		}
		for j := range message.Blocks {
			block := &message.Blocks[j]
			if block.Kind == conversation.ToolResult && !block.IsUnread && len(block.Text) >= leastSource && !r.exchange.Points(i, j) {
				r.earlier = append(r.earlier, shown{i, block.ID, strings.Split(block.Text, "\n")})
			}
		}
	}
	return nil
}

func isBoundary(digest conversation.Digest) bool { return digest.Flags.Has(conversation.IsBoundary) }

// result puts a pointer in place of a result if one earlier result has enough of it.
func (r *repeats) result(index, at int, message conversation.Message) error {
	if err := r.look(); err != nil {
		return err
	}
	block := message.Blocks[at]
	lines := strings.Split(block.Text, "\n")
	source := r.closest(lines)
	if source == nil {
		return nil
	}
	body, pointed := pointAt(lines, source.lines)
	if float64(pointed) < leastPointed*float64(len(block.Text)) {
		return nil
	}
	told, err := r.describe(source)
	if err != nil {
		return err
	}
	text := fmt.Sprintf(pointerFrame, told, archive.NameOf(r.exchange.Chain[len(r.exchange.Digests)]), archived(index)) + body
	message.Replace(at, text)
	if _, err := r.exchange.Write(message); err != nil {
		return nil //nolint:nilerr // a message that cannot be written stays as it is
	}
	saved := r.exchange.Digests[index].Tokens - r.count(message)
	if saved >= leastPointedTokens {
		r.draft.Point(index, at, source.message, text, -saved)
	}
	return nil
}

// pointerFrame opens a pointer: the earlier result, the name of the archive and the place of the
// original in it.
const pointerFrame = `[AUTO CONTEXT COMPRESSION] Lines that stand word for word in %s, further up, are not repeated here: [= lines a–b] is lines a to b of that result. Everything else is as it came. recall_get %s%s returns the whole, if you have that tool.
`

// closest returns the earlier result that shares the most of lines, the newest of several; nil if
// no result shares enough.
func (r *repeats) closest(lines []string) *shown {
	wanted, whole := make(map[string]bool, len(lines)), 0
	for _, line := range lines {
		wanted[line] = true
		whole += len(line) + 1
	}
	var best *shown
	most := int(leastPointed * float64(whole))
	for i := range r.earlier {
		common := 0
		met := make(map[string]bool)
		for _, line := range r.earlier[i].lines {
			if wanted[line] && !met[line] {
				met[line] = true
				common += len(line) + 1
			}
		}
		if common >= most {
			best, most = &r.earlier[i], common
		}
	}
	return best
}

// describe names an earlier result: by its call, or by its position.
func (r *repeats) describe(source *shown) (string, error) {
	for i := source.message - 1; i >= 0 && r.exchange.Digests[i].Flags.Has(conversation.HasCall|conversation.HasResult); i-- {
		if !r.exchange.Digests[i].Flags.Has(conversation.HasCall) {
			continue
		}
		message, err := r.exchange.Message(i)
		if err != nil {
			return "", err
		}
		for j := range message.Blocks {
			if block := &message.Blocks[j]; block.Kind == conversation.ToolCall && block.ID == source.id {
				call := ledger.ParseCall(block)
				return "the result of your earlier call " + call.Tool + "(" + shorten(call.Argument, argumentCharacters) + ")", nil
			}
		}
	}
	return "an earlier result " + source.id, nil
}

// pointAt returns lines with pointers in place of runs that source has in the same order, and how
// many bytes the pointers replace.
func pointAt(lines, source []string) (text string, pointed int) {
	places := map[string][]int{}
	for i, line := range source {
		if len(places[line]) < placesOfLine {
			places[line] = append(places[line], i)
		}
	}
	var out strings.Builder
	for i := 0; i < len(lines); {
		from, n, bytes := longest(lines[i:], source, places[lines[i]])
		if i > 0 {
			out.WriteByte('\n')
		}
		if bytes < leastRun {
			out.WriteString(lines[i])
			i++
			continue
		}
		out.WriteString(pointerTo(from, n))
		pointed += bytes
		i += n
	}
	return out.String(), pointed
}

// pointerTo returns a pointer to so many lines of an earlier result, from an index on.
func pointerTo(from, lines int) string {
	if lines == 1 {
		return fmt.Sprintf("[= line %d]", from+1)
	}
	return fmt.Sprintf("[= lines %d–%d]", from+1, from+lines)
}

// longest returns the longest run of source, from one of places on, that lines begin with.
func longest(lines, source []string, places []int) (from, count, bytes int) {
	for _, place := range places {
		n, size := 0, 0
		for n < len(lines) && place+n < len(source) && lines[n] == source[place+n] {
			size += len(lines[n]) + 1
			n++
		}
		if size > bytes {
			from, count, bytes = place, n, size
		}
	}
	return from, count, bytes
}
