package resume

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/cmd/palimpsest/connect"
	"palimpsest/pipeline/archive/export"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/web/clients"
)

// Session is the carried over part of a recorded session.
type Session struct {
	export.Main

	// Last is the number of the last message to carry over.
	Last int

	// Whole says that the thread is complete.
	Whole bool

	messages []conversation.Message
}

// Cut returns a session up to a message; -1 means all, with the answer that has not been sent back yet.
func Cut(main export.Main, at int) (Session, error) {
	session := Session{Main: main, Last: len(main.Messages) - 1, Whole: at < 0}
	switch {
	case len(main.Messages) == 0:
		return Session{}, fmt.Errorf("nothing of session %s is in the archive: there is nothing to carry on", main.ID)
	case at >= len(main.Messages):
		return Session{}, fmt.Errorf("the thread has messages 0 to %d: there is no message %d", session.Last, at)
	case at >= 0:
		session.Last = at
	}
	for i, raw := range main.Messages[:session.Last+1] {
		message, err := formats.Parse(main.Format, raw)
		if err != nil {
			return Session{}, fmt.Errorf("message %d: %w", i, err)
		}
		session.messages = append(session.messages, message)
	}
	if !session.Whole || main.Answer == nil {
		return session, nil
	}
	answer, err := formats.Parse(main.Format, main.Answer)
	if err == nil && !session.has(answer) {
		session.messages = append(session.messages, answer)
	}
	return session, err
}

// has reports whether the client has sent an answer back already.
func (s *Session) has(answer conversation.Message) bool {
	codec, known := formats.Of(s.Format)
	if !known {
		return true
	}
	said := string(codec.Normalize(answer))
	for i := range s.messages {
		if s.messages[i].Role == conversation.Assistant && string(codec.Normalize(s.messages[i])) == said {
			return true
		}
	}
	return false
}

// isOf reports whether the session's format is that of a family of providers.
func (s *Session) isOf(family string) bool {
	codec, known := formats.Of(s.Format)
	return known && codec.Traits().Provider == family
}

// The families of providers that the clients' model names belong to.
const (
	ofAnthropic = "anthropic"
	ofOpenAI    = "openai"
)

// modelOf returns the session's model if it belongs to a family, and otherwise the default model of setups.
func (s *Session) modelOf(family string) string {
	switch {
	case s.isOf(family) && s.Model != "":
		return s.Model
	case family == ofAnthropic:
		return clients.Claude
	}
	return clients.GPT
}

// family returns the family with which a client of both continues.
func (s *Session) family() string {
	if s.isOf(ofAnthropic) {
		return ofAnthropic
	}
	return ofOpenAI
}

// Target is a client that a session can be continued in.
type Target struct {
	ID      string // as palimpsest connect knows it
	Title   string
	Program string

	// Tried is the version that the session's file was tried with.
	Tried string

	native func(operation) (name string, input any) // "" if the client has no equal tool
	write  func(*writing) (File, error)

	// keepsID says that a session from the same client keeps its id.
	keepsID bool
}

// File is a session's file and the client's way to continue it.
type File struct {
	Path      string
	Content   []byte
	Before    string   // a command to run first, or ""
	Arguments []string // of the client
	ID        string   // the client's id of the session

	// Known is a pattern for the client's files of a session with this id; "" if it cannot have one.
	Known string
}

// Targets returns the clients that a session can be continued in.
func Targets() []Target { return []Target{claudeCode(), codex(), pi(), openCode()} }

// ByName returns the client with an id.
func ByName(id string) (Target, error) {
	var known []string
	for _, target := range Targets() {
		if target.ID == id {
			return target, nil
		}
		known = append(known, target.ID)
	}
	return Target{}, fmt.Errorf("a session cannot be continued in %q: there are %s", id, strings.Join(known, ", "))
}

// Warning describes a problem with an installed version, or returns "". version is the client's own output
// about its version, "" if the client is not installed.
func (t Target) Warning(version string) string {
	tried := strings.SplitN(t.Tried, ".", 3)
	wanted := strings.Join(tried[:2], ".") + "."
	switch {
	case version == "":
		return fmt.Sprintf("%s is not in the path: install %s before you type the command.", t.Program, t.Title)
	case !strings.HasPrefix(version, wanted) && !strings.Contains(version, " "+wanted):
		return fmt.Sprintf("%s %s is installed, and this was tried with %s. If it does not open the session, install that version, or a newer palimpsest.", t.Title, version, t.Tried)
	}
	return ""
}

// writing is the state of writing a session's file.
type writing struct {
	session *Session
	target  Target
	rounds  []round
	place   connect.Place
	folder  string // that the client works in
	id      string
	now     time.Time
}

// Write returns the file of a session for a client that works in the place's folder.
func (t Target) Write(session *Session, place connect.Place, now time.Time) (File, error) {
	made := &writing{session: session, target: t, place: place, folder: realFolder(place.Project), id: newID(), now: now}
	if _, err := uuid.Parse(session.Name); err == nil && t.keepsID && t.ID == session.Client && session.Whole {
		made.id = session.Name
	}
	made.rounds = session.rounds(t)
	note := client.Carried{Client: session.Client, Session: session.ID, Thread: session.Lane, Last: session.Last}.Note()
	if len(made.rounds) == 0 {
		return File{}, fmt.Errorf("nothing was said in session %s up to message %d: there is nothing to carry on", session.ID, session.Last)
	}
	made.rounds[0].user = append([]said{{text: note}}, made.rounds[0].user...)
	return t.write(made)
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// at returns the time of a round, for clients that order by time. The last round is now.
func (w *writing) at(round int) time.Time {
	return w.now.Add(time.Duration(round-len(w.rounds)) * time.Second)
}

// lines writes one JSON value per line.
type lines struct {
	text []byte
	err  error
}

func (l *lines) add(value any) {
	encoded, err := json.Marshal(value)
	if err != nil && l.err == nil {
		l.err = err
	}
	l.text = append(append(l.text, encoded...), '\n')
}
