package conversation_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"palimpsest/pipeline/conversation"
)

// said returns a message of a role with flags.
func said(role conversation.Role, flags ...conversation.Flags) conversation.Digest {
	digest := conversation.Digest{Role: role}
	for _, flag := range flags {
		digest.Flags |= flag
	}
	return digest
}

func typed() conversation.Digest { return said(conversation.User, conversation.HasTyped) }

func TestTurnsAreWhatMustStayTogether(t *testing.T) {
	t.Parallel()

	var (
		system    = said(conversation.System)
		answer    = said(conversation.Assistant)
		call      = said(conversation.Assistant, conversation.HasCall)
		thinking  = said(conversation.Assistant, conversation.HasCall, conversation.HasThinking)
		results   = said(conversation.User, conversation.HasResult)
		mixed     = said(conversation.User, conversation.HasResult, conversation.HasTyped)
		reminder  = said(conversation.User)
		tool      = said(conversation.Tool, conversation.HasResult)
		reasoning = said(conversation.Assistant, conversation.HasThinking, conversation.IsPart)
		item      = said(conversation.Assistant, conversation.IsPart)
		itemCall  = said(conversation.Assistant, conversation.HasCall, conversation.IsPart)
		pending   = said(conversation.Assistant, conversation.HasCall, conversation.HasPending)
		settled   = said(conversation.Assistant, conversation.HasSettled)
		program   = said(conversation.Assistant, conversation.HasPending, conversation.IsPart)
		output    = said(conversation.Assistant, conversation.HasSettled, conversation.IsPart)
	)
	for _, test := range []struct {
		name     string
		messages []conversation.Digest
		want     []conversation.Turn
	}{
		{"nothing", nil, nil},
		{"system alone", []conversation.Digest{system, system}, nil},
		{"not answered yet", []conversation.Digest{system, typed()}, []conversation.Turn{{From: 1, To: 2}}},
		{"question and answer", []conversation.Digest{typed(), answer, typed(), answer}, []conversation.Turn{{From: 0, To: 2}, {From: 2, To: 4}}},
		{"several typed messages before one answer", []conversation.Digest{typed(), typed(), answer, typed()}, []conversation.Turn{{From: 0, To: 3}, {From: 3, To: 4}}},
		{"tool loop", []conversation.Digest{typed(), call, results, call, results, answer}, []conversation.Turn{{From: 0, To: 3}, {From: 3, To: 5}, {From: 5, To: 6}}},
		{"thinking in a tool loop", []conversation.Digest{typed(), thinking, results, thinking, results}, []conversation.Turn{{From: 0, To: 3}, {From: 3, To: 5}}},
		{"typed text among the results", []conversation.Digest{typed(), call, mixed, answer}, []conversation.Turn{{From: 0, To: 3}, {From: 3, To: 4}}}, // A3
		{"typed text behind the results", []conversation.Digest{typed(), call, results, typed(), answer}, []conversation.Turn{{From: 0, To: 3}, {From: 3, To: 5}}},
		{"a reminder behind the results", []conversation.Digest{typed(), call, results, reminder, answer}, []conversation.Turn{{From: 0, To: 3}, {From: 3, To: 5}}},
		{"three results of parallel calls", []conversation.Digest{system, typed(), call, tool, tool, tool, answer}, []conversation.Turn{{From: 1, To: 6}, {From: 6, To: 7}}}, // A2
		{"a system message in the middle", []conversation.Digest{typed(), system, call, results, system, answer}, []conversation.Turn{{From: 0, To: 5}, {From: 5, To: 6}}},
		{"two answers in a row", []conversation.Digest{typed(), answer, call, results}, []conversation.Turn{{From: 0, To: 4}}},
		{"begins with an answer", []conversation.Digest{answer, typed(), answer}, []conversation.Turn{{From: 0, To: 1}, {From: 1, To: 3}}},
		{"items of one answer", []conversation.Digest{typed(), reasoning, item, itemCall, itemCall, tool, tool, reasoning, itemCall, tool}, []conversation.Turn{{From: 0, To: 7}, {From: 7, To: 10}}},
		{"calls and outputs in alternation after one reasoning", []conversation.Digest{typed(), reasoning, itemCall, tool, itemCall, tool, item}, []conversation.Turn{{From: 0, To: 6}, {From: 6, To: 7}}},                    // W40
		{"a provider's call answered behind a client's result", []conversation.Digest{typed(), pending, results, settled, typed(), answer}, []conversation.Turn{{From: 0, To: 4}, {From: 4, To: 6}}},                          // W36
		{"a provider's call that is never answered", []conversation.Digest{typed(), pending, results, typed(), answer}, []conversation.Turn{{From: 0, To: 3}, {From: 3, To: 5}}},                                              // W36
		{"a program and the calls that it makes", []conversation.Digest{typed(), reasoning, program, itemCall, tool, output, item, typed(), item}, []conversation.Turn{{From: 0, To: 6}, {From: 6, To: 7}, {From: 7, To: 9}}}, // W40
		{"a call between the outputs of others", []conversation.Digest{typed(), itemCall, itemCall, tool, itemCall, tool, tool, item}, []conversation.Turn{{From: 0, To: 7}, {From: 7, To: 8}}},                               // A1
		{"a user who speaks before all outputs came", []conversation.Digest{typed(), itemCall, itemCall, tool, typed(), tool, typed()}, []conversation.Turn{{From: 0, To: 6}, {From: 6, To: 7}}},
		{"one output too many", []conversation.Digest{typed(), itemCall, tool, tool, typed(), item, typed()}, []conversation.Turn{{From: 0, To: 4}, {From: 4, To: 6}, {From: 6, To: 7}}}, // A5
		{"calls and outputs in alternation without reasoning", []conversation.Digest{typed(), itemCall, tool, itemCall, tool}, []conversation.Turn{{From: 0, To: 3}, {From: 3, To: 5}}},
	} {
		if got := conversation.Turns(test.messages); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// group is a set of calls with their results; 0 for messages with neither.
type group int

// script is a legal conversation: its messages and the group of each.
type script struct {
	messages []conversation.Digest
	groups   []group
	next     group
}

func (s *script) add(g group, digest conversation.Digest) {
	s.messages = append(s.messages, digest)
	s.groups = append(s.groups, g)
}

// ask adds what a user says before an answer.
func (s *script) ask(t *rapid.T) {
	for range rapid.IntRange(1, 3).Draw(t, "typed") {
		s.add(0, typed())
	}
	if rapid.IntRange(0, 5).Draw(t, "system") == 0 {
		s.add(0, said(conversation.System))
	}
}

// answerWhole adds an answer of Anthropic or Chat and what its calls return.
func (s *script) answerWhole(t *rapid.T, isChat bool) {
	calls := rapid.IntRange(0, 4).Draw(t, "calls")
	answer := said(conversation.Assistant)
	if rapid.Bool().Draw(t, "thinking") {
		answer.Flags |= conversation.HasThinking
	}
	if calls == 0 {
		s.add(0, answer)
		return
	}
	s.next++
	answer.Flags |= conversation.HasCall
	s.add(s.next, answer)
	if !isChat {
		results := said(conversation.User, conversation.HasResult)
		if rapid.Bool().Draw(t, "mixed") {
			results.Flags |= conversation.HasTyped
		}
		s.add(s.next, results)
		return
	}
	for range calls {
		s.add(s.next, said(conversation.Tool, conversation.HasResult))
	}
}

// answerItems adds an answer of Responses and what its calls return.
func (s *script) answerItems(t *rapid.T) {
	calls := rapid.IntRange(0, 4).Draw(t, "calls")
	reasons := rapid.Bool().Draw(t, "reasoning")
	alternate := reasons && rapid.Bool().Draw(t, "alternate")
	s.next++
	if reasons {
		s.add(s.next, said(conversation.Assistant, conversation.HasThinking, conversation.IsPart))
	}
	if calls == 0 || rapid.Bool().Draw(t, "text") {
		s.add(s.next, said(conversation.Assistant, conversation.IsPart))
	}
	call, output := said(conversation.Assistant, conversation.HasCall, conversation.IsPart), said(conversation.Tool, conversation.HasResult)
	if alternate {
		for range calls {
			s.add(s.next, call)
			s.add(s.next, output)
		}
		return
	}
	pending := 0
	for calls > 0 || pending > 0 {
		// The last output comes after the last call: until then one is always open.
		if calls > 0 && (pending < 2 || rapid.Bool().Draw(t, "call")) {
			s.add(s.next, call)
			calls, pending = calls-1, pending+1
			continue
		}
		s.add(s.next, output)
		pending--
	}
}

func draw(t *rapid.T) script {
	var s script
	for range rapid.IntRange(0, 2).Draw(t, "lead") {
		s.add(0, said(conversation.System))
	}
	shape := rapid.IntRange(0, 2).Draw(t, "shape")
	for range rapid.IntRange(0, 8).Draw(t, "exchanges") {
		s.ask(t)
		for range rapid.IntRange(1, 4).Draw(t, "loop") {
			if shape == 2 {
				s.answerItems(t)
			} else {
				s.answerWhole(t, shape == 1)
			}
		}
	}
	if rapid.Bool().Draw(t, "open") {
		s.ask(t)
	}
	return s
}

// A1, A2 for any legal conversation.
func TestTurnsHoldEveryMessageAndNeverPartCallsFromResults(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		turns := conversation.Turns(s.messages)
		turnOf := make([]int, len(s.messages))
		next := conversation.Lead(s.messages)
		for n, turn := range turns {
			if turn.From != next || turn.To <= turn.From {
				t.Fatalf("turn %d is %v, the one before ends at %d", n, turn, next)
			}
			for i := turn.From; i < turn.To; i++ {
				turnOf[i] = n
			}
			next = turn.To
		}
		if next != len(s.messages) {
			t.Fatalf("the last turn ends at %d of %d", next, len(s.messages))
		}
		checkGroups(t, s, turnOf)
		checkPrefixes(t, s, turns)
	})
}

func checkGroups(t *rapid.T, s script, turnOf []int) {
	first := map[group]int{}
	for i, g := range s.groups {
		if g == 0 {
			continue
		}
		if j, ok := first[g]; ok && turnOf[i] != turnOf[j] {
			t.Fatalf("messages %d and %d belong together, but are in turns %d and %d", j, i, turnOf[j], turnOf[i])
		} else if !ok {
			first[g] = i
		}
	}
	for i := 1; i < len(s.messages); i++ {
		asked := s.messages[i-1].Role == conversation.User && !s.messages[i-1].Flags.Has(conversation.HasResult)
		if asked && s.messages[i].Role == conversation.Assistant && turnOf[i-1] != turnOf[i] {
			t.Fatalf("the question %d is not in the turn of its answer", i-1)
		}
	}
}

// checkPrefixes checks that a longer history leaves the turns before the newest one as they were.
func checkPrefixes(t *rapid.T, s script, turns []conversation.Turn) {
	n := rapid.IntRange(0, len(s.messages)).Draw(t, "prefix")
	before := conversation.Turns(s.messages[:n])
	if len(before) < 2 {
		return
	}
	closed := before[:len(before)-1]
	if len(turns) < len(closed) || !slices.Equal(turns[:len(closed)], closed) {
		t.Fatalf("after %d messages the turns are %v, in the end %v", n, before, turns)
	}
}
