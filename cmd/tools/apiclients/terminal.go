package apiclients

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/creack/pty"

	"palimpsest/api/upstream/providerdouble"
)

// Claude Code's question to the model after each turn at a terminal, and the model's answer. The client
// shows it as the person's possible next message.
const (
	suggestionMark = "[SUGGESTION MODE: "
	suggestedWord  = "zebrafish"
)

// terminalCase is the case of a person who uses Claude Code at a terminal. The client then sends extra
// requests beside the conversation: for names of the session, and for the person's next message.
const terminalCase = "at a terminal"

// terminalSession is the session's id. At a terminal Claude Code cannot find a session that was begun
// without one.
const terminalSession = "0b6f2d5e-5a0f-4c39-9a4e-6d1f4f0c7a11"

func atTerminal() Case {
	return Case{
		Name: terminalCase, window: windowSize, terminal: true, only: claudeCodePackage,
		says: says("Read all parts, one after the other.", noteAsk, "Read it again."),
		play: readPartsThenNotes, judge: wentOnBesideSuggestions,
	}
}

// readPartsThenNotes reads all parts, ends its turn, and reads the note each time it is asked to.
func readPartsThenNotes(m *model, round int, r providerdouble.Request) providerdouble.Reply {
	switch {
	case round <= parts:
		return readParts(parts)(m, round, r)
	case round == parts+1:
		return providerdouble.Reply{Text: "All parts are read."}
	case (round-parts)%2 == 0:
		return providerdouble.Reply{Text: "Let me look.", Calls: []providerdouble.Call{m.client.shell("cat " + noteFile)}}
	default:
		return providerdouble.Reply{Text: finalWord + ". The note says: " + lastOf(r.Results)}
	}
}

// wentOnBesideSuggestions requires that the conversation stays in its lane, shortened, while the client
// asks for suggestions.
func wentOnBesideSuggestions(t *Trial) (string, error) {
	if _, err := toldTheWord(t); err != nil {
		return "", err
	}
	talk, beside := *t, 0
	talk.Exchanges = nil
	for _, exchange := range t.Exchanges {
		switch {
		case strings.Contains(string(exchange.Body), suggestionMark):
			beside++
			if number(exchange.Answered.Get("X-Palimpsest-Tokens-After")) >= number(exchange.Answered.Get("X-Palimpsest-Tokens-Before")) {
				return "", fmt.Errorf("a request for a suggestion was not shortened as the conversation is: %s", exchange.Compression())
			}
		default:
			talk.Exchanges = append(talk.Exchanges, exchange)
		}
	}
	if beside < 2 || t.model.suggestions != beside {
		return "", fmt.Errorf("%d requests for a suggestion, the model was asked for %d, want two", beside, t.model.suggestions)
	}

	return fmt.Sprintf("%d suggestions", beside), oneLane(&talk)
}

// prepareTerminal keeps Claude Code from asking questions at the first start in the session's folder.
func prepareTerminal(s *session) error {
	work, err := filepath.EvalSymlinks(s.work)
	if err != nil {
		return fmt.Errorf("the session's folder: %w", err)
	}
	type project struct {
		Trusted bool `json:"hasTrustDialogAccepted"`
	}

	return writeJSON(s, ".claude.json", struct {
		Onboarded bool               `json:"hasCompletedOnboarding"`
		Theme     string             `json:"theme"`
		Projects  map[string]project `json:"projects"`
	}{true, "dark", map[string]project{work: {Trusted: true}}})
}

// runAtTerminal runs a process at its own terminal. It types Ctrl-C once the process has printed until, and
// again when the process asks for that, so that the process saves its session.
func runAtTerminal(process *exec.Cmd, printed *transcript) error {
	process.Stdin, process.Stdout, process.Stderr = nil, nil, nil
	process.SysProcAttr = nil // because pty.Start creates a session, which includes a process group
	terminal, err := pty.StartWithSize(process, &pty.Winsize{Rows: 50, Cols: 160})
	if err != nil {
		return fmt.Errorf("start at a terminal: %w", err)
	}
	const interrupt, asksAgain = "\x03", "Ctrl-C"
	seen := false
	printed.answered = func() error {
		seen = true
		printed.until, printed.answered = asksAgain, func() error { return typed(terminal, interrupt) }
		return typed(terminal, interrupt)
	}
	_, _ = io.Copy(printed, terminal) // ends with an error once the other end is closed
	err = errors.Join(process.Wait(), terminal.Close())
	if !seen {
		err = errors.Join(fmt.Errorf("it ended before it had printed %q", printed.until), err)
	}

	return err
}

// typed types keys at a terminal.
func typed(terminal io.StringWriter, keys string) error {
	if _, err := terminal.WriteString(keys); err != nil {
		return fmt.Errorf("type: %w", err)
	}

	return nil
}
