package rehydrator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/search"
	"palimpsest/pipeline/conversation"
)

// Name is the module's name in configs, headers and events.
const Name = "rehydrator"

// Module is the module rehydrator.
type Module struct {
	archive archive.Searcher
}

// New returns the module. archive finds messages outside the request: of a history that the client
// has left out, and of earlier sessions. If it is nil, the module only restores compressed turns of
// the request itself.
func New(archive archive.Searcher) *Module { return &Module{archive: archive} }

// Name implements pipeline.Module.
func (*Module) Name() string { return Name }

// found is one document that comes back.
type found struct {
	pointer  string // for the reader
	item     string // identifies the document within the lane
	from     int    // its first message in the request
	messages []conversation.Message
	score    float64
}

// Process implements pipeline.Module.
func (m *Module) Process(ctx context.Context, exchange *pipeline.View) (*pipeline.Draft, error) {
	at, isNew := newest(exchange)
	if !isNew || exchange.Request.ReadOnly != "" || exchange.Class.IsSide() || exchange.Lane.Finalized {
		return nil, nil //nolint:nilnil // nothing changes
	}
	if exchange.Lane.Projection == nil && !exchange.Class.Marker.Found() && m.archive == nil {
		return nil, nil //nolint:nilnil // all there is stands in the prompt
	}
	typed, err := typedText(&exchange.Conversation, at)
	if err != nil {
		return nil, err
	}
	config := configOf(exchange)
	question := question{
		exchange: exchange, newest: at, typed: typed,
		sentences: refers(typed, config.TriggerPhrases),
	}
	if exchange.Lane.Projection != nil || exchange.Class.Marker.Found() { // otherwise no name is searched for
		question.names = names(typed)
	}
	back, err := m.recover(ctx, &question)
	if err != nil || len(back.found) == 0 {
		return nil, err
	}
	text, items, scores := question.text(&back)
	draft := exchange.Draft(Name)
	if text == "" || !draft.Inject(config.Placement, text, items) {
		return nil, nil //nolint:nilnil // nothing changes
	}
	draft.Event(Name+".matched", Name+".trigger="+back.trigger+" "+Name+".scores="+strings.Join(scores, ","), map[string]int{"matched": len(items)})
	return draft, nil
}

// newest returns the newest message of the user if a person typed in it and the
// provider has not seen it.
func newest(exchange *pipeline.View) (at int, isNew bool) {
	for i := len(exchange.Conversation.Digests) - 1; i >= exchange.LastLength(); i-- {
		if digest := &exchange.Conversation.Digests[i]; digest.Role == conversation.User {
			// Text next to results comes from the client: a skill that it loads, a notice.
			return i, digest.Flags.Has(conversation.HasTyped) && !digest.Flags.Has(conversation.HasResult)
		}
	}
	return 0, false
}

// typedText returns the text that a person typed in a message.
func typedText(asked *pipeline.Conversation, at int) (string, error) {
	message, err := asked.Message(at)
	if err != nil {
		return "", fmt.Errorf("newest message: %w", err)
	}
	var typed []string
	for i := range message.Blocks {
		if block := &message.Blocks[i]; block.Kind == conversation.Text && conversation.IsTyped(block.Text) {
			text := strings.TrimSpace(conversation.WithoutReminders(block.Text))
			if !strings.HasPrefix(text, "<") { // a client's notice in an unknown tag
				typed = append(typed, text)
			}
		}
	}
	return strings.Join(typed, "\n"), nil
}

// recovery is the result of a search.
type recovery struct {
	found   []found // best first
	words   string  // the searched words
	trigger string  // the cause: "phrase", "archive", nameTrigger, or plainTrigger
}

// plainTrigger is a question without a reference, nameTrigger a name that the prompt lacks.
const (
	plainTrigger = "question"
	nameTrigger  = "name"
)

// recover searches for the documents to bring back.
func (m *Module) recover(ctx context.Context, question *question) (recovery, error) {
	hidden := question.hidden()
	if len(question.sentences)+len(question.names) > 0 {
		back, answered, err := m.referred(ctx, question, hidden)
		if err != nil || len(back.found) > 0 || answered {
			return back, err
		}
	}
	if hidden.count == 0 {
		return recovery{}, nil
	}
	words := strings.Join(plain(question.typed), "\n")
	if words == "" {
		return recovery{}, nil
	}
	back, err := question.fromTalk(hidden, words)
	return recovery{back, words, plainTrigger}, err
}

// referred finds the documents that the question refers to or names. answered means that the prompt
// shows them.
func (m *Module) referred(ctx context.Context, question *question, hidden part) (back recovery, answered bool, err error) {
	if words := question.words(); words != "" {
		found, answered, err := question.fromBody(hidden, words, configOf(question.exchange).SimilarityThreshold, false)
		if err != nil || len(found) > 0 || answered {
			return recovery{found, words, "phrase"}, answered, err
		}
	}
	if absent := question.absent(hidden); len(absent) > 0 {
		words := strings.Join(absent, "\n")
		found, _, err := question.fromBody(hidden.holding(absent), words, namesShare, true)
		if err != nil || len(found) > 0 {
			return recovery{found, words, nameTrigger}, false, err
		}
	}
	if m.archive == nil {
		return recovery{}, false, nil
	}
	back, err = m.fromArchive(ctx, question)
	return back, false, err
}

// fromArchive searches the archive outside the request's own messages: in the lane's session if the
// client has left something out, and in the sessions in the config's scope if a sentence refers to
// something.
func (m *Module) fromArchive(ctx context.Context, question *question) (recovery, error) {
	exchange, config := question.exchange, configOf(question.exchange)
	query := archive.Query{Text: question.words(), Limit: 4 * config.MaxRehydrated}
	scope := config.Scope
	if query.Text == "" {
		scope = pipeline.ScopeSession
		if exchange.Class.Marker.Found() {
			query.Text = strings.Join(question.unknown(), "\n")
		}
	}
	if query.Text == "" || !bound(&query, scope, exchange) {
		return recovery{}, nil
	}
	if !exchange.Lane.Now.IsZero() && config.SearchDepthDays > 0 {
		query.Since = exchange.Lane.Now.Add(-time.Duration(config.SearchDepthDays) * 24 * time.Hour)
	}
	hits, err := m.archive.Search(ctx, exchange.Scope.Workspace, query)
	if err != nil {
		return recovery{}, fmt.Errorf("search the archive: %w", err)
	}
	back := recovery{words: query.Text, trigger: "archive"}
	for i := range hits {
		hit := &hits[i]
		item := archive.Pointer{Lane: hit.Lane, From: hit.From, To: hit.To}.String()
		if hit.Score < config.SimilarityThreshold || len(back.found) == config.MaxRehydrated || question.isBack(item) {
			continue
		}
		messages, err := m.archive.Messages(ctx, exchange.Scope.Workspace, hit)
		if err != nil {
			return recovery{}, fmt.Errorf("read a hit of the archive: %w", err)
		}
		if len(messages) == 0 || exchange.Conversation.Has(&messages[0]) {
			continue // the request's own
		}
		kept, _, err := question.current(&search.Document{}, messages, -len(messages), part{messages: make([]bool, question.newest)}, true)
		if err != nil {
			return recovery{}, err
		}
		if hasCall(messages) && !hasCall(kept) {
			continue // the request has a newer version
		}
		messages = kept
		if known, err := question.has(messages); err != nil {
			return recovery{}, err
		} else if known {
			continue
		}
		back.found = append(back.found, found{pointer: where(hit, exchange.Lane.Session), item: item, messages: messages, score: hit.Score})
	}
	return back, nil
}

// bound limits a query to the sessions whose text may come into the prompt of an exchange, and
// reports whether there can be one.
func bound(query *archive.Query, scope string, exchange *pipeline.View) bool {
	switch {
	case scope == pipeline.ScopeWorkspace:
		return true
	case scope == pipeline.ScopeProject && exchange.Scope.Project != "":
		query.Project = exchange.Scope.Project
	case scope == pipeline.ScopeProject, scope == pipeline.ScopePerson:
		query.APIKey, query.Person = exchange.Scope.APIKey, true
	case scope == pipeline.ScopeKey:
		query.APIKey = exchange.Scope.APIKey
	default:
		query.Session, query.Lane = exchange.Lane.Session, exchange.Lane.Line
		return exchange.Lane.Session != uuid.Nil
	}
	query.EndUser = &exchange.Scope.EndUser
	return true
}

// where describes the source of a hit to the model.
func where(hit *archive.Hit, session uuid.UUID) string {
	if hit.Session == session {
		return "from before this conversation was summarised"
	}
	return "from an earlier session"
}

// words returns the search text of a question with references: the whole text if it is short, else
// those sentences.
func (q *question) words() string {
	if len(q.sentences) > 0 && len(q.typed) <= maxSentence {
		return q.typed
	}
	return strings.Join(q.sentences, "\n")
}

// documentsOf cuts hidden turns into documents.
func documentsOf(turns []readTurn) []search.Document {
	var documents []search.Document
	for _, turn := range turns {
		documents = append(documents, search.Documents(turn.From, turn.messages)...)
	}
	return documents
}
