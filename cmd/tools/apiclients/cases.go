package apiclients

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"

	"palimpsest/api/upstream/providerdouble"
)

// Case is one test for each client.
type Case struct {
	Name string // of the column

	// window is the context window, in tokens, of the provider and of the workspace; 0 means the model's.
	// unknown leaves the workspace's unset, so that the proxy has to learn it from the provider's refusal.
	window  int
	unknown bool

	// assumed is the workspace's wrong idea of the provider's window. The provider of Responses then
	// refuses a prompt that is too long inside a stream.
	assumed int

	// compacts makes the client compact on its own, by configuring a small window.
	compacts bool

	// answered says that the workspace answers clients' own requests for a summary.
	answered bool

	// recalls says that the client has the proxy's recall tools.
	recalls bool

	// threads says that the provider holds the client's conversation.
	threads bool

	// terminal says that a person sits at the client, from the user's second message on.
	terminal bool

	// connects says that palimpsest connect sets the client up.
	connects bool

	// carries says that palimpsest resume continues the session in other clients.
	carries bool

	// tools says that the client offers its tools for files and plans, even if the version does not by
	// default.
	tools bool

	// rounds is how many answers the model gives before it reads the note, and the number of parts to read;
	// 0 means parts.
	rounds int

	// only is the package of the only client for the case; "" means all.
	only string

	// says returns the user's messages, in order.
	says func(c Client) []string

	// play is the model.
	play func(m *model, round int, r providerdouble.Request) providerdouble.Reply

	// refused says that the provider refuses some requests on purpose.
	refused bool

	// judge checks the trial, in addition to the checks of every case. The text is a remark on a successful
	// trial.
	judge func(t *Trial) (string, error)
}

// windowSize is the context window, in tokens, of the cases with a session that exceeds it.
const windowSize = 60_000

// parts is how many parts a session past the window reads: about 90,000 tokens.
const parts = 46

// manyParts is how many parts a long session reads, one per turn: far past the window.
const manyParts = 300

// few is how many parts fill a session for a manual compaction: more than the 8,000 tokens that pi keeps of
// its end.
const few = 8

// windowCase is the case of a session that exceeds its window.
const windowCase = "past the window"

// answeredCase is the case of a compaction that the proxy answers itself.
const answeredCase = "compaction answered"

// Cases returns all cases, in the order of the table's columns.
func Cases() []Case {
	return append([]Case{
		{Name: answerCase, says: says("Say that you are there."), play: sayReady, judge: saidReady},
		{Name: "tool turn", says: says(noteAsk), play: readNote, judge: toldTheWord},
		{Name: windowCase, window: windowSize, says: says("Read all parts, one after the other."), play: readParts(parts), judge: wentPastTheWindow},
		{Name: "300 steps past the window", window: windowSize, rounds: manyParts, only: claudeCodePackage, says: says("Read all parts, one after the other."), play: readParts(manyParts), judge: wentPastTheWindowAtAProfit},
		{Name: "window not known", window: windowSize, unknown: true, refused: true, says: says("Read all parts, one after the other."), play: readParts(parts), judge: wentPastTheWindow},
		{Name: "window set too large", window: windowSize, assumed: 100_000, refused: true, says: says("Read all parts, one after the other."), play: readParts(parts), judge: wentPastTheWindow},
		{Name: "own compaction", compacts: true, says: saysUntilCompaction, play: readForCompaction(func(c Client) int { return c.fills }), judge: compactedItself},
		{Name: "compaction asked for", says: saysCompact, play: readForCompaction(func(Client) int { return few }), judge: compactedItself},
		{Name: answeredCase, window: windowSize, answered: true, only: claudeCodePackage, says: saysCompact, play: readForCompaction(func(Client) int { return parts }), judge: goesOnFromOurSummary},
		{Name: "subagent", says: says("Have someone find the word."), play: sendErrand, judge: keptTheErrandApart},
		{Name: "subagent past the window", window: windowSize, only: codexPackage, says: says("Read all parts, and have someone find the word."), play: readPartsThenSendErrand, judge: sharedThePrompt},
		{Name: "429, then ok", refused: true, says: says(noteAsk), play: failOnce(providerdouble.MisbehaveRateLimit), judge: recovered(http.StatusTooManyRequests)},
		{Name: "529, then ok", refused: true, says: says(noteAsk), play: failOnce(providerdouble.MisbehaveOverloaded), judge: recovered(529)},
		{Name: "prompt too long", window: 20, unknown: true, refused: true, says: says(noteAsk), play: readNote, judge: saidTooLong},
		{Name: "cut stream", says: says(noteAsk), play: failOnce(providerdouble.MisbehaveCut), judge: noticedTheCut},
		recallCase(),
		threads(),
		atTerminal(),
		connectedCase(),
		carriedCase(),
	}, toolCases()...)
}

// hasNet reports whether the case reports savings: its session exceeds the window, and no request is
// refused on purpose.
func (c *Case) hasNet() bool { return c.window > 0 && !c.refused }

// read is how many answers the model gives before it reads the note.
func (c *Case) read() int { return cmp.Or(c.rounds, parts) }

func says(texts ...string) func(Client) []string {
	return func(Client) []string { return texts }
}

// noteAsk is the question for the note.
const noteAsk = "Read " + noteFile + " and tell me the word."

// saysUntilCompaction has the client read until it is beyond its window, and then sends another message.
func saysUntilCompaction(c Client) []string {
	if c.once {
		return []string{"Read all parts, one after the other, and then tell me the word."}
	}

	if c.asksItself {
		return []string{"Read all parts, one after the other."}
	}

	return []string{"Read all parts, one after the other.", noteAsk}
}

func saysCompact(c Client) []string {
	return []string{"Read all parts, one after the other.", c.manual, noteAsk}
}

// sayReady answers at once.
func sayReady(*model, int, providerdouble.Request) providerdouble.Reply {
	return providerdouble.Reply{Text: finalWord + ". I am there."}
}

// readNote reads the note and repeats it.
func readNote(m *model, _ int, r providerdouble.Request) providerdouble.Reply {
	if len(r.Results) == 0 {
		return providerdouble.Reply{Text: "Let me look.", Calls: []providerdouble.Call{m.client.shell("cat " + noteFile)}}
	}

	return providerdouble.Reply{Text: finalWord + ". The note says: " + lastOf(r.Results)}
}

// readParts reads a number of parts, then the note.
func readParts(count int) func(*model, int, providerdouble.Request) providerdouble.Reply {
	return thenNote(count, func(m *model, round int) providerdouble.Reply {
		return providerdouble.Reply{Text: fmt.Sprintf("Now part %d.", round), Calls: []providerdouble.Call{m.client.shell("cat " + partFile(round))}}
	})
}

// thenNote works for a number of rounds, then reads the note and repeats it.
func thenNote(count int, work func(m *model, round int) providerdouble.Reply) func(*model, int, providerdouble.Request) providerdouble.Reply {
	return func(m *model, round int, r providerdouble.Request) providerdouble.Reply {
		switch {
		case round <= count:
			return work(m, round)
		case round == count+1:
			return providerdouble.Reply{Text: "Now the note.", Calls: []providerdouble.Call{m.client.shell("cat " + noteFile)}}
		default:
			return providerdouble.Reply{Text: finalWord + ". The note says: " + lastOf(r.Results)}
		}
	}
}

// readForCompaction reads a number of parts, ends its turn, and reads the note on request.
func readForCompaction(count func(Client) int) func(*model, int, providerdouble.Request) providerdouble.Reply {
	return func(m *model, round int, r providerdouble.Request) providerdouble.Reply {
		switch {
		case bytes.Contains(r.Body, []byte("Read "+noteFile)): // the bridge's addition may follow it
			return readNote(m, round, r)
		case round > count(m.client) && !m.client.once:
			return providerdouble.Reply{Text: "All parts are read."}
		default:
			return readParts(count(m.client))(m, round, r)
		}
	}
}

// sendErrand starts a subagent, waits for it and repeats its result.
func sendErrand(m *model, round int, r providerdouble.Request) providerdouble.Reply {
	switch {
	case round == 1:
		return providerdouble.Reply{Text: "I send someone.", Calls: []providerdouble.Call{m.client.errand(errandMark + ": read " + noteFile + " and report the word.")}}
	case round == 2 && m.client.await != nil:
		return providerdouble.Reply{Text: "I wait.", Calls: []providerdouble.Call{m.client.await(lastOf(r.Results))}}
	default:
		// Some clients report as the tool's result, some in a message after it.
		return providerdouble.Reply{Text: finalWord + ". Back came: " + lastOf(r.Results) + " " + r.User}
	}
}

// readPartsThenSendErrand starts a subagent after the session is past its window.
func readPartsThenSendErrand(m *model, round int, r providerdouble.Request) providerdouble.Reply {
	if round <= parts {
		return readParts(parts)(m, round, r)
	}
	return sendErrand(m, round-parts, r)
}

// failOnce makes the first request fail as the case asks, and then reads the note.
func failOnce(misbehave string) func(*model, int, providerdouble.Request) providerdouble.Reply {
	return func(m *model, round int, r providerdouble.Request) providerdouble.Reply {
		reply := readNote(m, round, r)
		if round == 1 {
			reply.Misbehave = misbehave
		}

		return reply
	}
}
