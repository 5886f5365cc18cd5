package sessiondb_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/session"
)

// talk has the user and a model say some words in turn: those in capitals are answers.
func (c *client) talk(words ...string) {
	for _, word := range words {
		role := "user"
		if word >= "A" && word <= "Z" {
			role = "assistant"
		}
		c.say(fmt.Sprintf(`{"role":"%s","content":"%s"}`, role, word))
	}
}

// apart returns the client as a process knows it that has heard of nothing: it opens a lane of
// its own, for another session unless that has a name.
func (c *client) apart(messages int) *client {
	other := *c
	other.messages, other.chain, other.recorded = slices.Clone(c.messages[:messages]), slices.Clone(c.chain[:messages+1]), 0
	other.lane = uuid.New()
	if !c.named {
		other.session = uuid.New()
	}
	return &other
}

// sums is what lists show of a workspace's sessions.
type sums struct{ sessions, lanes, exchanges, before, after, net, reach, reachBefore int }

func (f *fixture) sums(t *testing.T) (all sums) {
	t.Helper()
	err := f.runner.InTenant(t.Context(), f.scope.Workspace, func(tx *gorm.DB) error {
		row := tx.Raw(`SELECT count(*), (SELECT count(*) FROM lanes), sum(exchanges), sum(tokens_before), sum(tokens_after), sum(net_microusd), sum(reach), sum(reach_before) FROM sessions`).Row()
		return row.Scan(&all.sessions, &all.lanes, &all.exchanges, &all.before, &all.after, &all.net, &all.reach, &all.reachBefore)
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func sumsOf(sessions, lanes, exchanges int) sums {
	return sums{sessions: sessions, lanes: lanes, exchanges: exchanges, before: 100 * exchanges, after: 60 * exchanges, net: -7 * exchanges, reach: exchanges, reachBefore: 100 * exchanges}
}

// Two processes that cannot tell each other of a session open a lane each. Whichever is recorded
// first, the other joins it, with all that follows, and nothing of the second stays.
func TestLaneOfAProcessThatCouldNotHearOfASessionJoinsIt(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{true, false} {
		for order, name := range []string{"the beginning is recorded first", "the rest is recorded first"} {
			for _, announced := range []bool{true, false} {
				t.Run(fmt.Sprintf("named %v, %s, announced %v", named, name, announced), func(t *testing.T) {
					t.Parallel()
					f := setup(t)
					c := f.newClient()
					c.named = named
					c.talk("a")
					whole := *c
					whole.talk("B", "c", "D", "e")
					other := whole.apart(3)
					first, second := c.update(), other.update()
					if !named {
						first.Name, second.Name = "", ""
					}
					second.At = first.At.Add(time.Second)
					if announced {
						for _, one := range []session.Update{second, first} {
							if err := f.store.Announce(t.Context(), f.scope.Workspace, []session.Update{one}); err != nil {
								t.Fatal(err)
							}
						}
					}
					both := []session.Update{first, second}
					if order == 1 {
						slices.Reverse(both)
					}
					for i := range both {
						if err := f.store.Record(t.Context(), f.scope.Workspace, both[i:i+1]); err != nil {
							t.Fatal(err)
						}
					}
					into := both[0].Lane
					if both[1].Lane != into || both[1].Session != both[0].Session {
						t.Errorf("recorded in lanes %s and %s of %s and %s", into, both[1].Lane, both[0].Session, both[1].Session)
					}
					// Each process goes on in the lane that it remembers.
					c.messages, c.chain = whole.messages[:3], whole.chain[:4]
					other.messages, other.chain = whole.messages, whole.chain
					for _, later := range []*client{c, other} {
						seen := later.update()
						if err := f.store.Announce(t.Context(), f.scope.Workspace, []session.Update{seen}); err != nil {
							t.Fatal(err)
						}
						recorded := []session.Update{seen}
						if err := f.store.Record(t.Context(), f.scope.Workspace, recorded); err != nil {
							t.Fatal(err)
						}
						if recorded[0].Lane != into || recorded[0].Session != both[0].Session {
							t.Errorf("a later request is recorded in lane %s of %s, want %s", recorded[0].Lane, recorded[0].Session, into)
						}
					}
					if found := whole.find(t); found.Lane != into || found.Match != 5 || found.Archived != 5 {
						t.Errorf("the session goes on in lane %s at %d of %d, want %s at 5", found.Lane, found.Match, found.Archived, into)
					}
					whole.whole(t, into)
					if got, want := f.sums(t), sumsOf(1, 1, 4); got != want {
						t.Errorf("%+v, want %+v", got, want)
					}
				})
			}
		}
	}
}

// A lane never joins its own fork: the fork would become its own parent, and the messages that both share
// would be gone. A process that knows the fork from the store doesn't know whose fork it is.
func TestLaneStaysApartFromItsOwnFork(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]func(c, fork *client) *client{
		"the fork goes on":                     func(_, fork *client) *client { fork.talk("F", "g"); return fork },
		"the lane gets to the end of its fork": func(c, _ *client) *client { c.talk("D", "e"); return c },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			c := f.newClient()
			c.named = true
			c.talk("a", "B", "c")
			c.record(t)
			fork := c.apart(3)
			fork.talk("D", "e")
			forked := fork.update()
			forked.Ancestry = session.Ancestry{Parent: c.lane, ForkAt: 3}
			forked.Skip(3)
			if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{forked}); err != nil {
				t.Fatal(err)
			}
			one := later(c, fork)
			one.recorded = 0 // it doesn't know what is stored either
			one.record(t)
			var own int
			err := f.runner.InTenant(t.Context(), f.scope.Workspace, func(tx *gorm.DB) error {
				return tx.Raw("SELECT count(*) FROM lanes WHERE id = parent_id").Scan(&own).Error
			})
			if err != nil || own > 0 {
				t.Fatalf("%d lanes are their own parents (%v)", own, err)
			}
			c.whole(t, c.lane)
			fork.whole(t, fork.lane)
		})
	}
}

// A client that goes back and says something else has a fork, though the two processes that serve
// it have heard nothing of each other.
func TestHistoriesThatDifferStayForks(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{true, false} {
		f := setup(t)
		c := f.newClient()
		c.named = named
		c.talk("a", "B", "c", "D", "e")
		other := c.apart(3)
		other.talk("X", "y")
		for _, one := range []*client{c, other} {
			seen := []session.Update{one.update()}
			if !named {
				seen[0].Name = ""
			}
			if err := f.store.Record(t.Context(), f.scope.Workspace, seen); err != nil {
				t.Fatal(err)
			}
			one.whole(t, seen[0].Lane)
			if one == other && (seen[0].Lane == c.lane || seen[0].Parent != c.lane || seen[0].ForkAt != 3 || seen[0].Session != c.session) {
				t.Errorf("the other history is lane %s, a fork of %s at %d in session %s", seen[0].Lane, seen[0].Parent, seen[0].ForkAt, seen[0].Session)
			}
		}
		c.whole(t, c.lane)
		if got, want := f.sums(t), sumsOf(1, 2, 2); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// Runs without a name that begin with the same words are sessions of their own.
func TestRunsThatBeginAlikeStayApart(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.newClient()
	c.talk("a")
	for range 3 {
		seen := c.apart(1).update()
		seen.Name = ""
		if err := f.store.Record(t.Context(), f.scope.Workspace, []session.Update{seen}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := f.sums(t), sumsOf(3, 3, 3); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Of processes that record the two parts of a session at once, one sees what the other does.
func TestLanesThatAreRecordedAtOnceAreJoined(t *testing.T) {
	t.Parallel()
	f := setup(t)
	const rounds = 20
	for range rounds {
		c := f.newClient()
		c.talk("a", "B", "c", "D", "e")
		first := c.apart(3)
		parts, failures := [][]session.Update{{first.update()}, {c.update()}}, make(chan error)
		for i := range parts {
			parts[i][0].Name = ""
			go func() { failures <- f.store.Record(t.Context(), f.scope.Workspace, parts[i]) }()
		}
		for range parts {
			if err := <-failures; err != nil {
				t.Fatal(err)
			}
		}
		if parts[0][0].Lane != parts[1][0].Lane {
			t.Errorf("recorded in lanes %s and %s", parts[0][0].Lane, parts[1][0].Lane)
		}
	}
	if got, want := f.sums(t), sumsOf(rounds, rounds, 2*rounds); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Two lanes that are both recorded before anything tells that they are one become one with the
// request that does, with the requests and counts of both.
func TestRecordedLanesOfOneSessionBecomeOne(t *testing.T) {
	t.Parallel()
	f := setup(t)
	whole := f.newClient()
	whole.talk("a", "B", "c", "D", "e", "F", "g")
	first, second := whole.apart(1), whole.apart(5)
	record := func(c *client, position int) session.Update {
		c.messages, c.chain = whole.messages[:position], whole.chain[:position+1]
		seen := []session.Update{c.update()}
		seen[0].Name, seen[0].At = "", seen[0].At.Add(time.Duration(position)*time.Second)
		if err := f.store.Record(t.Context(), f.scope.Workspace, seen); err != nil {
			t.Fatal(err)
		}
		return seen[0]
	}
	record(first, 1)
	// The first process has announced a later request: the end that both have in common tells
	// nothing of whose answer followed.
	announced := whole.apart(7)
	announced.lane, announced.session = first.lane, first.session
	if err := f.store.Announce(t.Context(), f.scope.Workspace, []session.Update{announced.update()}); err != nil {
		t.Fatal(err)
	}
	f.exec(t, "UPDATE lanes SET position = 7 WHERE id = ?", first.lane)
	if other := record(second, 5); other.Lane != second.lane {
		t.Fatalf("the second lane is recorded in %s", other.Lane)
	}
	f.exec(t, `INSERT INTO exchanges (workspace_id, id, at, session_id, lane_id, api_key_id, provider, endpoint, model, client, class, stream, status,
			position, compression, tokens_before, tokens_after, window_tokens, level_0, level_1, level_2, level_3,
			input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, cost_microusd, net_microusd, overhead_us, ttfb_us, duration_us, attempts)
		SELECT workspace_id, gen_random_uuid(), now(), session_id, id, gen_random_uuid(), 'anthropic', '/v1/messages', '', '', '', false, 200,
			5, 'none', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 FROM lanes WHERE id = ?`, second.lane)
	if last := record(first, 7); last.Lane != first.lane {
		t.Errorf("the request that tells is recorded in %s, want %s", last.Lane, first.lane)
	}
	whole.whole(t, first.lane)
	if got, want := f.sums(t), sumsOf(1, 1, 3); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	var moved int
	err := f.runner.InTenant(t.Context(), f.scope.Workspace, func(tx *gorm.DB) error {
		return tx.Raw("SELECT count(*) FROM exchanges WHERE lane_id = ? AND session_id = ?", first.lane, first.session).Scan(&moved).Error
	})
	if err != nil || moved != 1 {
		t.Errorf("%d exchanges have moved (%v), want 1", moved, err)
	}
	if later := record(second, 7); later.Lane != first.lane {
		t.Errorf("a later request of the second lane is recorded in %s, want %s", later.Lane, first.lane)
	}
}

// exec changes rows of the workspace.
func (f *fixture) exec(t *testing.T, statement string, values ...any) {
	t.Helper()
	err := f.runner.InTenant(t.Context(), f.scope.Workspace, func(tx *gorm.DB) error { return tx.Exec(statement, values...).Error })
	if err != nil {
		t.Fatal(err)
	}
}

// What people say about a session, and their stars, go with its messages to the session that it joins.
func TestCommentsAndStarsGoToTheSessionThatIsJoined(t *testing.T) {
	t.Parallel()
	f := setup(t)
	left, into := f.newClient(), f.newClient()
	left.talk("a", "B", "c")
	into.talk("x", "Y", "z")
	left.record(t)
	into.record(t)
	person, _, err := f.db.DB.Accounts.SignUp(t.Context(), "ada@example.com", "hash", "her own")
	if err != nil {
		t.Fatal(err)
	}
	owner := f.db.Owner(t)
	for _, statement := range []string{
		"INSERT INTO members (workspace_id, user_id, role) VALUES ($1, $2, 'member')",
		"INSERT INTO session_comments (workspace_id, id, session_id, lane_id, message, user_id, text) VALUES ($1, $3, $3, $4, 1, $2, 'x')",
		"INSERT INTO session_stars (workspace_id, user_id, session_id) VALUES ($1, $2, $3)",
		"INSERT INTO session_scores (workspace_id, id, session_id, user_id, score, note) VALUES ($1, $3, $3, $2, 1, '')",
		"INSERT INTO session_labels (workspace_id, session_id, label, user_id) VALUES ($1, $3, 'good', $2)",
	} {
		statement = "WITH given AS (SELECT $1::uuid, $2::uuid, $3::uuid, $4::uuid) " + statement
		if _, err := owner.Exec(t.Context(), statement, f.scope.Workspace, person.ID, left.session, left.lane); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if settled, err := f.store.Settle(t.Context(), f.scope.Workspace, left.lane, into.lane, into.session); err != nil || !settled {
		t.Fatalf("settled %v, %v", settled, err)
	}
	var comments, stars, scores, labels int
	err = owner.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM session_comments WHERE session_id = $1 AND lane_id = $2 AND message = 1),
		(SELECT count(*) FROM session_stars WHERE session_id = $1), (SELECT count(*) FROM session_scores WHERE session_id = $1),
		(SELECT count(*) FROM session_labels WHERE session_id = $1)`, into.session, into.lane).Scan(&comments, &stars, &scores, &labels)
	if err != nil || comments != 1 || stars != 1 || scores != 1 || labels != 1 {
		t.Errorf("%d comments, %d stars, %d scores and %d labels went along, %v", comments, stars, scores, labels, err)
	}
}
