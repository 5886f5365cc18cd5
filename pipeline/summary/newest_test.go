package summary

import (
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// Of two summaries the one of more messages is gone on from, in any stored order; one of another
// history is not.
func TestSummaryOfMostMessagesIsGoneOnFrom(t *testing.T) {
	t.Parallel()
	chain := []conversation.Hash{{0}, {1}, {2}, {3}, {4}, {5}}
	of := func(covers int) session.Summary {
		return session.Summary{Covers: covers, Chain: conversation.Hash{byte(covers)}}
	}
	other := session.Summary{Covers: 5, Chain: conversation.Hash{9}}
	for name, test := range map[string]struct {
		known []session.Summary
		want  int // messages; 0 if there is no summary
	}{
		"the longer one last":    {[]session.Summary{of(2), of(4)}, 4},
		"the longer one first":   {[]session.Summary{of(4), of(2)}, 4},
		"of another history":     {[]session.Summary{of(2), other}, 2},
		"of all messages":        {[]session.Summary{of(2), of(5)}, 5},
		"of more than there are": {[]session.Summary{of(6)}, 0},
	} {
		got := 0
		if found := newest(test.known, chain); found != nil {
			got = found.Covers
		}
		if got != test.want {
			t.Errorf("%s: %d messages, want %d", name, got, test.want)
		}
	}
}

// A job is for messages that the lane's history is known to have.
func TestJobIsTakenForMessagesOfItsHistoryOnly(t *testing.T) {
	t.Parallel()
	for covers, want := range map[int]bool{-1: false, 0: false, 1: true, 3: true, 4: false} {
		job := newLane().user("Go.").job()
		job.Covers, job.Chain = covers, make([]conversation.Hash, 4) // links of three messages
		if got := NewWorker(Config{}).Ask(job); got != want {
			t.Errorf("a job for %d messages is taken: %t", covers, got)
		}
	}
}
