package memorybench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"palimpsest/pipeline/archive/search"
	"palimpsest/pipeline/conversation"
)

// The limits of the measurement: the number of hits to check, and the maximum tokens that the rehydrator
// may inject.
const (
	looked   = 5
	injected = 1000
)

// Row is a search's result for one kind of questions.
type Row struct {
	Name     string
	Asks     int
	At1, At3 int // asks whose evidence is the best hit, or among the best three
	At5      int
	Answered int     // asks with their answer in the text to inject; tool questions only
	Target   float64 // minimum share of At5
	Best     float64 // minimum share of At1
}

// Share returns a count as a share of the asks.
func (r *Row) Share(count int) float64 {
	if r.Asks == 0 {
		return 0
	}
	return float64(count) / float64(r.Asks)
}

// Bench measures the search of package search on a set.
type Bench struct {
	set   *Recorded
	count func(string) int
	lanes map[string]*search.Memory
	whole *search.Memory // of all sessions together
	bases map[string]int // start of each session in whole

	titles map[string]string
}

// New returns a bench on a set. count counts the tokens of a text.
func New(set *Recorded, count func(string) int) *Bench {
	b := &Bench{set: set, count: count, lanes: map[string]*search.Memory{}, bases: map[string]int{}, titles: map[string]string{}}
	var all []search.Document
	base := 0
	for _, id := range set.ids() {
		messages := set.Sessions[id]
		b.lanes[id] = search.NewMemory(search.Documents(0, messages))
		b.bases[id], b.titles[id] = base, title(messages)
		all = append(all, search.Documents(base, messages)...)
		base += len(messages)
	}
	b.whole = search.NewMemory(all)
	return b
}

// Run measures all kinds of questions, each in its session before the place of the question, and the tool
// questions also in all sessions together.
func (b *Bench) Run() []Row {
	described := func(ask *Ask) string { return ask.Text() }
	return []Row{
		b.measure("what a tool printed", b.set.Tools, pair, described, 0.95),
		b.measure("the same, asked in other words", b.set.Tools, pair, loosely, 0),
		b.measure("a file read before", b.set.Rereads, pair, described, 0.90),
		b.measure("the same, by the path alone", b.set.Rereads, pair, byPath, 0),
		b.measure("a message that refers back", b.set.Refs, anyOf, described, 0.80),
		b.everywhere("what a tool printed, in all sessions together", b.set.Tools, described),
		b.everywhere("the same, with the session named", b.set.Tools, b.inSession),
	}
}

// loosely asks a tool question without its form, and without its first word, so that it does not contain a
// whole description.
func loosely(ask *Ask) string {
	text := strings.TrimSuffix(strings.TrimPrefix(ask.Question, "Earlier you ran a command to: "), ". What exactly did it print?")
	if _, rest, several := strings.Cut(text, " "); several {
		text = rest
	}
	return "what was the output when we looked at this earlier: " + text + "?"
}

// byPath asks for the path of a file only.
func byPath(ask *Ask) string {
	return ask.Query[strings.LastIndexByte(ask.Query, '\n')+1:]
}

// span is a hit: messages from the first to before the second.
type span [2]int

// pair reports whether a hit contains the call and its result.
func pair(hit span, evidence []int) bool {
	return hit[0] <= evidence[0] && evidence[len(evidence)-1] < hit[1]
}

// anyOf reports whether a hit contains one of several messages.
func anyOf(hit span, evidence []int) bool {
	return slices.ContainsFunc(evidence, func(message int) bool { return hit[0] <= message && message < hit[1] })
}

func (b *Bench) measure(name string, asks []Ask, holds func(span, []int) bool, text func(*Ask) string, target float64) Row {
	row := Row{Name: name, Asks: len(asks), Target: target}
	for i := range asks {
		ask := &asks[i]
		hits := spans(b.lanes[ask.Session].Search(search.Ask(text(ask)), ask.At, 10*looked))
		row.note(slices.IndexFunc(hits, func(hit span) bool { return holds(hit, ask.Evidence) }))
		if ask.Answer != "" && strings.Contains(b.inject(ask.Session, hits, text(ask)), ask.Answer) {
			row.Answered++
		}
	}
	return row
}

// inSession asks a tool question and names its session by half of its title.
func (b *Bench) inSession(ask *Ask) string {
	words := strings.Fields(strings.ReplaceAll(b.titles[ask.Session], `"`, ""))
	return fmt.Sprintf("In the session about %q: %s", strings.Join(words[:(len(words)+1)/2], " "), ask.Text())
}

// everywhere searches all sessions, each as a whole.
func (b *Bench) everywhere(name string, asks []Ask, text func(*Ask) string) Row {
	row := Row{Name: name, Asks: len(asks), Best: 0.80}
	for i := range asks {
		ask := &asks[i]
		base := b.bases[ask.Session]
		evidence := []int{ask.Evidence[0] + base, ask.Evidence[1] + base}
		question, where := search.Locate(text(ask), time.Time{})
		matches := b.whole.Search(search.Ask(question), 0, search.MostLending)
		gained := func(m *search.Match) float64 { return m.Rank * where.Gain(b.titleAt(m.Document.From), time.Time{}) }
		slices.SortStableFunc(matches, func(x, y search.Match) int { return cmp.Compare(gained(&y), gained(&x)) })
		hits := spans(matches)
		row.note(slices.IndexFunc(hits, func(hit span) bool { return pair(hit, evidence) }))
	}
	return row
}

// titleAt returns the title of the session with a message's index among all.
func (b *Bench) titleAt(message int) string {
	for id, base := range b.bases {
		if base <= message && message < base+len(b.set.Sessions[id]) {
			return b.titles[id]
		}
	}
	return ""
}

// title is a session's title: the beginning of its first typed text.
func title(messages []conversation.Message) string {
	for i := range messages {
		if text, isTyped := typedIn(&messages[i]); isTyped {
			line, _, _ := strings.Cut(text, "\n")
			return line[:min(len(line), longestTitle)]
		}
	}
	return ""
}

// longestTitle is the maximum number of bytes of a session's title.
const longestTitle = 120

func (r *Row) note(place int) {
	if place < 0 {
		return
	}
	if place < 1 {
		r.At1++
	}
	if place < 3 {
		r.At3++
	}
	r.At5++
}

// spans joins the documents of the same messages, as a search of the archive does.
func spans(matches []search.Match) []span {
	var hits []span
	for i := range matches {
		hit := span{matches[i].Document.From, matches[i].Document.To}
		if !slices.Contains(hits, hit) && len(hits) < looked {
			hits = append(hits, hit)
		}
	}
	return hits
}

// inject returns the text for the model.
func (b *Bench) inject(session string, hits []span, question string) string {
	var found [][]conversation.Message
	for _, hit := range hits {
		found = append(found, b.set.Sessions[session][hit[0]:hit[1]])
	}
	return strings.Join(search.Excerpts(found, question, injected, b.count), "\n")
}

// Markdown returns rows as a table.
func Markdown(rows []Row) string {
	var text strings.Builder
	text.WriteString("| asked for | questions | best hit | in the best 3 | in the best 5 | to reach | answer in the injected text |\n" + strings.Repeat("| --- ", 7) + "|\n")
	for i := range rows {
		row := &rows[i]
		target, answered := "", ""
		if row.Target > 0 {
			target = fmt.Sprintf("%.0f %%", 100*row.Target)
		}
		if row.Best > 0 {
			target = fmt.Sprintf("%.0f %% best hits", 100*row.Best)
		}
		if row.Answered > 0 {
			answered = percent(row.Share(row.Answered))
		}
		fmt.Fprintf(&text, "| %s | %d | %s | %s | **%s** | %s | %s |\n", row.Name, row.Asks,
			percent(row.Share(row.At1)), percent(row.Share(row.At3)), percent(row.Share(row.At5)), target, answered)
	}
	return text.String()
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
