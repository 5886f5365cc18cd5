package sessiondb_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
)

// attempt returns one at a summary of the client's first messages.
func (c *client) attempt(covers int, text, reason string) session.SummaryAttempt {
	return session.SummaryAttempt{
		Summary: session.Summary{Covers: covers, Chain: c.chain[covers], Text: text},
		Session: c.session, Lane: c.lane, Reason: reason, Version: 1, Form: "own", Model: "claude-haiku-4-5",
		Usage: wire.Usage{Reported: true, Input: 900, Output: 100}, CostMicroUSD: 40, At: time.Now(),
	}
}

func (c *client) save(t *testing.T, attempt session.SummaryAttempt) {
	t.Helper()
	if err := c.f.store.SaveSummary(t.Context(), c.f.scope.Workspace, attempt); err != nil {
		t.Fatal(err)
	}
}

// C6: what a model wrote is read again byte for byte, by another process too;
// rejected attempts are kept but never found.
func TestSummariesAreReadAgainAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	c := setup(t).conversationOf(8)
	c.commit(t, c.projection(1, 6))
	c.save(t, c.attempt(4, "## Goal\n- “first”\n", ""))
	c.save(t, c.attempt(6, "an answer that was cut", "truncated"))
	c.save(t, c.attempt(6, "## Goal\n- second", ""))

	found := c.find(t)

	if len(found.Summaries) != 2 || found.Summaries[0].Text != "## Goal\n- “first”\n" || found.Summaries[0].Chain != c.chain[4] ||
		found.Summaries[1].Text != "## Goal\n- second" || found.Summaries[1].Covers != 6 {
		t.Errorf("found: %+v", found.Summaries)
	}
	again, err := c.f.store.Summaries(t.Context(), c.f.scope.Workspace, c.lane)
	if err != nil || len(again) != 2 || again[1] != found.Summaries[1] {
		t.Errorf("%+v, %v", again, err)
	}
	for covers, want := range map[int]bool{4: true, 6: true, 7: false} {
		if tried, err := c.f.store.SummaryTried(t.Context(), c.f.scope.Workspace, c.lane, covers); tried != want || err != nil {
			t.Errorf("a summary of %d messages was tried: %v, %v", covers, tried, err)
		}
	}
	if c.f.count(t, "summaries") != 3 {
		t.Error("the rejected attempt is not kept")
	}
	var kept struct{ Status, Reason, Text string }
	err = c.f.runner.InTenant(t.Context(), c.f.scope.Workspace, func(tx *gorm.DB) error {
		return tx.Raw("SELECT status, reason, text FROM summaries WHERE workspace_id = ? AND number = 2", c.f.scope.Workspace).Scan(&kept).Error
	})
	if err != nil || kept.Status != "rejected" || kept.Reason != "truncated" || kept.Text != "" {
		t.Errorf("kept: %+v, %v", kept, err)
	}
}

// What an attempt cost is taken off what its session saved, once for each.
func TestASummaryIsChargedToItsSession(t *testing.T) {
	t.Parallel()
	c := setup(t).conversationOf(8)
	c.commit(t, c.projection(1, 6))
	c.save(t, c.attempt(4, "x", ""))
	c.save(t, c.attempt(6, "", "empty"))
	var net int64
	err := c.f.runner.InTenant(t.Context(), c.f.scope.Workspace, func(tx *gorm.DB) error {
		return tx.Raw("SELECT net_microusd FROM sessions WHERE workspace_id = ? AND id = ?", c.f.scope.Workspace, c.session).Scan(&net).Error
	})
	if err != nil || net != -7-40-40 {
		t.Errorf("net %d, %v", net, err)
	}
}

// A lane that forked has the summaries of what it shares, and no others.
func TestAForkHasTheSummariesOfWhatItShares(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(8)
	c.commit(t, c.projection(1, 6))
	c.save(t, c.attempt(4, "shared", ""))
	c.save(t, c.attempt(6, "left", ""))
	fork := f.newClient()
	fork.session = c.session
	fork.messages, fork.chain = c.messages[:5:5], c.chain[:6:6]
	fork.recorded = 5
	fork.say(`{"role":"user","content":"another way"}`)
	seen := fork.update()
	seen.Parent, seen.ForkAt = c.lane, 5
	if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{seen}); err != nil {
		t.Fatal(err)
	}

	if found := fork.find(t).Summaries; len(found) != 1 || found[0].Text != "shared" {
		t.Errorf("found: %+v", found)
	}
}

// E11, S1: summaries go with their session, and another workspace sees none.
func TestSummariesGoWithTheirSessionAndStayInTheirWorkspace(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(8)
	c.commit(t, c.projection(1, 6))
	c.save(t, c.attempt(4, "x", ""))
	other := addWorkspace(t, f.runner)
	if found, err := f.store.Summaries(t.Context(), other, c.lane); err != nil || len(found) != 0 {
		t.Errorf("another workspace sees %+v, %v", found, err)
	}
	if err := f.store.SaveSummary(t.Context(), other, c.attempt(6, "y", "")); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("another workspace writes: %v", err)
	}
	if err := f.store.Browser().Delete(t.Context(), f.scope.Workspace, c.session); err != nil {
		t.Fatal(err)
	}
	if count := f.count(t, "summaries"); count != 0 {
		t.Errorf("%d summaries are left", count)
	}
	late := c.attempt(6, "late", "")
	late.Lane = uuid.New()
	if err := f.store.SaveSummary(t.Context(), f.scope.Workspace, late); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a summary of a lane that is gone: %v", err)
	}
}

// An attempt is kept while exchanges of its lane are recorded: both take the same
// rows, in the same order.
func TestSummariesAndRecordersDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.conversationOf(6)
	c.record(t)
	again := c.update()
	const rounds = 40
	var writers sync.WaitGroup
	for range 3 {
		writers.Go(func() {
			for range rounds {
				if err := f.store.Record(context.WithoutCancel(t.Context()), f.scope.Workspace, []session.Update{again}); err != nil {
					t.Error(err)
				}
			}
		})
		writers.Go(func() {
			for range rounds {
				if err := f.store.SaveSummary(context.WithoutCancel(t.Context()), f.scope.Workspace, c.attempt(4, "x", "refusal")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	if count := f.count(t, "summaries"); count != 3*rounds {
		t.Errorf("%d attempts are kept, want %d", count, 3*rounds)
	}
}
