package apiclients

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"

	"palimpsest/api/upstream/providerdouble"
)

// Case is one thing to try with each client.
type Case struct {
	Name string // of the column

	// window is the context window, in tokens, of the provider and of the
	// workspace; 0 is that of the model. unknown leaves the workspace's alone: the
	// proxy has to learn it from the provider's refusal.
	window  int
	unknown bool

	// assumed is the window that the workspace takes the provider's to be where it is
	// another. The provider of Responses refuses what is too long inside a stream then.
	assumed int

	// compacts says that the client is to compact by itself: it is made to believe
	// in a small window of its own.
	compacts bool

	// answered says that the workspace answers clients' own requests for a summary.
	answered bool

	// recalls says that the client is given the proxy's recall tools.
	recalls bool

	// threads says that the client has the provider hold its conversation.
	threads bool

	// terminal says that a person sits before the client, from the second thing on that is said.
	terminal bool

	// connects says that palimpsest connect sets the client up.
	connects bool

	// carries says that palimpsest resume carries the session on in other clients.
	carries bool

	// tools says that the client offers its tools for files and plans, whatever the
	// version offers by itself.
	tools bool

	// rounds is how many answers the model gives before it reads the note; 0 means parts.
	// So many parts there are to read.
	rounds int

	// only is the package of the one client that the case is for; "" means all.
	only string

	// says is what the user says, one after the other.
	says func(c Client) []string

	// play is the model.
	play func(m *model, round int, r providerdouble.Request) providerdouble.Reply

	// refused says that the provider refuses some requests on purpose.
	refused bool

	// judge looks at what came of it, beside what is looked at in every case. The
	// text says what is worth knowing of a trial that went well.
	judge func(t *Trial) (string, error)
}

// windowSize is the context window, in tokens, of the cases in which a session
// grows past it.
const windowSize = 60_000

// parts is how many parts a session past the window reads: about 90,000 tokens.
const parts = 46

// manyParts is how many parts a long session reads: far past the window, a turn each.
const manyParts = 300

// few is how many parts fill a session that is to be compacted at once: more than the 8,000 tokens that
// pi keeps of its end.
const few = 8

// windowCase is the case of a session that goes past its window.
const windowCase = "past the window"

// answeredCase is the case of a compaction that the proxy answers itself.
const answeredCase = "compaction answered"

// Cases returns all cases, in the order of the table's columns.
func Cases() []Case {
	return append([]Case{
		{Name: answerCase, says: says("Say that you are there."), play: sayReady, judge: saidReady},
		{Name: "tool turn", says: says("Read " + noteFile + " and tell me the word."), play: readNote, judge: toldTheWord},
		{Name: windowCase, window: windowSize, says: says("Read all parts, one after the other."), play: readParts(parts), judge: wentPastTheWindow},
		{Name: "300 steps past the window", window: windowSize, rounds: manyParts, only: claudeCodePackage, says: says("Read all parts, one after the other."), play: readParts(manyParts), judge: wentPastTheWindowAtAProfit},
		{Name: "window not known", window: windowSize, unknown: true, refused: true, says: says("Read all parts, one after the other."), play: readParts(parts), judge: wentPastTheWindow},
		{Name: "window set too large", window: windowSize, assumed: 100_000, refused: true, says: says("Read all parts, one after the other."), play: readParts(parts), judge: wentPastTheWindow},
		{Name: "own compaction", compacts: true, says: saysUntilCompaction, play: readForCompaction(func(c Client) int { return c.fills }), judge: compactedItself},
		{Name: "compaction asked for", says: saysCompact, play: readForCompaction(func(Client) int { return few }), judge: compactedItself},
		{Name: answeredCase, window: windowSize, answered: true, only: claudeCodePackage, says: saysCompact, play: readForCompaction(func(Client) int { return parts }), judge: goesOnFromOurSummary},
		{Name: "subagent", says: says("Have someone find the word."), play: sendErrand, judge: keptTheErrandApart},
		{Name: "subagent past the window", window: windowSize, only: codexPackage, says: says("Read all parts, and have someone find the word."), play: readPartsThenSendErrand, judge: sharedThePrompt},
		{Name: "429, then ok", refused: true, says: says("Read " + noteFile + " and tell me the word."), play: failOnce(providerdouble.MisbehaveRateLimit), judge: recovered(http.StatusTooManyRequests)},
		{Name: "529, then ok", refused: true, says: says("Read " + noteFile + " and tell me the word."), play: failOnce(providerdouble.MisbehaveOverloaded), judge: recovered(529)},
		{Name: "prompt too long", window: 20, unknown: true, refused: true, says: says("Read " + noteFile + " and tell me the word."), play: readNote, judge: saidTooLong},
		{Name: "cut stream", says: says("Read " + noteFile + " and tell me the word."), play: failOnce(providerdouble.MisbehaveCut), judge: noticedTheCut},
		recallCase(),
		threads(),
		atTerminal(),
		connectedCase(),
		carriedCase(),
	}, toolCases()...)
}

// hasNet reports whether the case tells what compression saved: a session goes past its
// window, and no request is refused on purpose.
func (c *Case) hasNet() bool { return c.window > 0 && !c.refused }

// read is how many answers the model gives before it reads the note.
func (c *Case) read() int { return cmp.Or(c.rounds, parts) }

func says(texts ...string) func(Client) []string {
	return func(Client) []string { return texts }
}

// saysUntilCompaction has the client read until it is beyond its window, and speaks
// to it again.
func saysUntilCompaction(c Client) []string {
	if c.once {
		return []string{"Read all parts, one after the other, and then tell me the word."}
	}

	return []string{"Read all parts, one after the other.", "Read " + noteFile + " and tell me the word."}
}

func saysCompact(c Client) []string {
	return []string{"Read all parts, one after the other.", c.manual, "Read " + noteFile + " and tell me the word."}
}

// sayReady answers at once.
func sayReady(*model, int, providerdouble.Request) providerdouble.Reply {
	return providerdouble.Reply{Text: finalWord + ". I am there."}
}

// readNote reads the note and says what is in it.
func readNote(m *model, _ int, r providerdouble.Request) providerdouble.Reply {
	if len(r.Results) == 0 {
		return providerdouble.Reply{Text: "Let me look.", Calls: []providerdouble.Call{m.client.shell("cat " + noteFile)}}
	}

	return providerdouble.Reply{Text: finalWord + ". The note says: " + lastOf(r.Results)}
}

// readParts reads so many parts, then the note.
func readParts(count int) func(*model, int, providerdouble.Request) providerdouble.Reply {
	return thenNote(count, func(m *model, round int) providerdouble.Reply {
		return providerdouble.Reply{Text: fmt.Sprintf("Now part %d.", round), Calls: []providerdouble.Call{m.client.shell("cat " + partFile(round))}}
	})
}

// thenNote works for so many rounds, then reads the note and says what is in it.
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

// readForCompaction reads so many parts, ends its turn, and reads the note when it
// is asked to.
func readForCompaction(count func(Client) int) func(*model, int, providerdouble.Request) providerdouble.Reply {
	return func(m *model, round int, r providerdouble.Request) providerdouble.Reply {
		switch {
		case bytes.Contains(r.Body, []byte("Read "+noteFile)): // what the bridge brings back may stand behind it
			return readNote(m, round, r)
		case round > count(m.client) && !m.client.once:
			return providerdouble.Reply{Text: "All parts are read."}
		default:
			return readParts(count(m.client))(m, round, r)
		}
	}
}

// sendErrand starts a subagent, waits for it and says what it brought.
func sendErrand(m *model, round int, r providerdouble.Request) providerdouble.Reply {
	switch {
	case round == 1:
		return providerdouble.Reply{Text: "I send someone.", Calls: []providerdouble.Call{m.client.errand(errandMark + ": read " + noteFile + " and report the word.")}}
	case round == 2 && m.client.await != nil:
		return providerdouble.Reply{Text: "I wait.", Calls: []providerdouble.Call{m.client.await(lastOf(r.Results))}}
	default:
		// Some clients report as the tool's result, some with a message behind it.
		return providerdouble.Reply{Text: finalWord + ". Back came: " + lastOf(r.Results) + " " + r.User}
	}
}

// readPartsThenSendErrand starts a subagent once the session is past its window.
func readPartsThenSendErrand(m *model, round int, r providerdouble.Request) providerdouble.Reply {
	if round <= parts {
		return readParts(parts)(m, round, r)
	}
	return sendErrand(m, round-parts, r)
}

// failOnce fails the first request as asked and then reads the note.
func failOnce(misbehave string) func(*model, int, providerdouble.Request) providerdouble.Reply {
	return func(m *model, round int, r providerdouble.Request) providerdouble.Reply {
		reply := readNote(m, round, r)
		if round == 1 {
			reply.Misbehave = misbehave
		}

		return reply
	}
}
