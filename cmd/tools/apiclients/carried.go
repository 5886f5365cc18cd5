package apiclients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"palimpsest/api/upstream/providerdouble"
)

// carriedAsk is the user's question in each client that continues the session.
const carriedAsk = "Which word did the note have?"

// carriedCase is the case in which palimpsest resume continues a session in each client that it supports.
func carriedCase() Case {
	return Case{Name: "carried on", carries: true, says: says(noteAsk), play: rememberNote, judge: wasCarriedOn}
}

// rememberNote reads the note. In the clients that continue the session it repeats the note if it knows it.
func rememberNote(m *model, round int, r providerdouble.Request) providerdouble.Reply {
	if !bytes.Contains(r.Body, []byte(carriedAsk)) {
		return readNote(m, round, r)
	}
	if !bytes.Contains(r.Body, []byte(noteWord)) {
		return providerdouble.Reply{Text: "I know of no note."}
	}
	return providerdouble.Reply{Text: finalWord + ". The word was " + noteWord + "."}
}

// heir is a client that continues a session, with its command for use without a terminal.
type heir struct {
	id, program string
	arguments   func(session string) []string
	variables   []string
}

func heirs() []heir {
	all := connections()
	return []heir{
		{"claude-code", "claude", func(session string) []string {
			return []string{"--resume", session, "-p", carriedAsk, "--model", "claude-opus-5-5"}
		}, all["Claude Code"].variables},
		{"codex", "codex", func(session string) []string {
			return []string{"-c", `model="gpt-5.5"`, "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "resume", session, carriedAsk}
		}, nil},
		{"pi", "pi", func(session string) []string { return []string{"--session", session, "--mode", "json", carriedAsk} }, all["pi, messages"].variables},
		{"opencode", "opencode", func(session string) []string {
			return []string{"run", "--session", session, "--model", "anthropic/claude-sonnet-5", "--auto", carriedAsk}
		}, all["opencode, messages"].variables},
	}
}

// carriedFrom are the rows with sessions to continue.
func carriedFrom() []string {
	return []string{"Claude Code", "Codex", "pi, messages", "pi, chat", "opencode, messages", "opencode, responses"}
}

// carried is the result of continuing a session in another client.
type carried struct {
	heir   string
	faults []string
}

// carryOn has the client read the note, and each heir continue the session, in its own home as on another
// machine.
func (t *Trial) carryOn(ctx context.Context, s *session) error {
	if err := t.Client.prepare(s); err != nil {
		return err
	}
	wanted, err := t.Client.say(s, t.Case.says(t.Client)[0], false)
	if err != nil {
		return err
	}
	t.Outputs = append(t.Outputs, wanted.run(ctx, s))
	from, err := s.recorded(ctx)
	if err != nil {
		return err
	}
	for _, one := range heirs() {
		t.carried = append(t.carried, carried{one.id, t.goOn(ctx, s, one, from)})
	}
	return nil
}

// goOn has a client continue a session, and returns the faults.
func (t *Trial) goOn(ctx context.Context, s *session, one heir, from string) (wrong []string) {
	elsewhere := *s
	elsewhere.home = filepath.Join(filepath.Dir(s.home), "home-"+one.id)
	var made struct {
		Session string `json:"client_session"`
		File    string
		Warning string
	}
	if err := elsewhere.asks(ctx, &made, "resume", from, "--in", one.id, "--json"); err != nil {
		return []string{err.Error()}
	}
	if made.Warning != "" {
		wrong = append(wrong, made.Warning)
	}
	if one.id == "opencode" {
		t.Outputs = append(t.Outputs, elsewhere.program(one.program, one.variables, "import", made.File).run(ctx, &elsewhere))
	}
	started := slices.Concat([]string{"run", "--server", s.url, "--key", s.key, one.id, "--"}, one.arguments(made.Session))
	output := command{program: s.binary, environment: one.variables, arguments: started}.run(ctx, &elsewhere)
	t.Outputs = append(t.Outputs, output)
	if output.Err != nil || !strings.Contains(output.Text, finalWord) {
		wrong = append(wrong, fmt.Sprintf("it does not know the word (%v)", output.Err))
	}
	if err := elsewhere.isLinked(ctx, made.Session, from); err != nil {
		wrong = append(wrong, err.Error())
	}
	return wrong
}

// isLinked requires that a continued session is recorded as the continuation of another, or as the same
// one. pi sends no session name, so its session is the newest.
func (s *session) isLinked(ctx context.Context, name, from string) error {
	var shown struct {
		ID    string
		Lanes []struct{ Continues string }
	}
	return patiently(ctx, func() (bool, error) {
		if s.asks(ctx, &shown, "sessions", "show", name, "--json") != nil {
			var listed []struct{ ID string }
			if err := s.asks(ctx, &listed, "sessions", "list", "--limit", "1", "--json"); err != nil || len(listed) == 0 {
				return false, err
			}
			if err := s.asks(ctx, &shown, "sessions", "show", listed[0].ID, "--json"); err != nil {
				return false, err
			}
		}
		return shown.ID == from || slices.ContainsFunc(shown.Lanes, func(lane struct{ Continues string }) bool { return lane.Continues == from }), nil
	})
}

// asks runs the program with --json as the owner of the key, and parses its output.
func (s *session) asks(ctx context.Context, into any, arguments ...string) error {
	output := command{program: s.binary, arguments: arguments, environment: []string{"PALIMPSEST_URL=" + s.url}}.run(ctx, s)
	if output.Err != nil {
		return fmt.Errorf("palimpsest %s: %w: %s", strings.Join(arguments, " "), output.Err, output.Text)
	}
	return json.Unmarshal([]byte(output.Text), into)
}

// recorded returns the conversation's id after its last answer is recorded.
func (s *session) recorded(ctx context.Context) (id string, err error) {
	err = patiently(ctx, func() (bool, error) {
		var listed []struct{ ID string }
		if err := s.asks(ctx, &listed, "sessions", "list", "--json"); err != nil {
			return false, err
		}
		for _, one := range listed {
			output := command{program: s.binary, arguments: []string{"sessions", "export", one.ID}, environment: []string{"PALIMPSEST_URL=" + s.url}}.run(ctx, s)
			if output.Err == nil && strings.Contains(output.Text, finalWord) {
				id = one.ID
				return true, nil
			}
		}
		return false, nil
	})
	return id, err
}

// patiently repeats a check until it succeeds.
func patiently(ctx context.Context, isSo func() (bool, error)) error {
	const attempts, pause = 40, 250 * time.Millisecond
	for range attempts {
		is, err := isSo()
		if is || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	return errors.New("it is not recorded as the continuation after ten seconds")
}

// wasCarriedOn requires that every heir knows the note, and that the archive knows the session's origin.
func wasCarriedOn(t *Trial) (string, error) {
	var wrong faults
	var well []string
	for _, one := range t.carried {
		if len(one.faults) == 0 {
			well = append(well, one.heir)
		}
		for _, fault := range one.faults {
			wrong.add(fmt.Errorf("in %s: %s", one.heir, fault))
		}
	}
	return "goes on in " + strings.Join(well, ", "), errors.Join(wrong...)
}
