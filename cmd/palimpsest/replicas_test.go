package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/sessiontest"
)

// replicaWindow is the context window that the sessions of these tests outgrow many times.
const replicaWindow = 30_000

// replicas are several programs on one database, as a balancer without stickiness
// sees them, and the one provider behind them.
type replicas struct {
	*tenant
	addresses []string
	programs  []*program
}

// startReplicas starts so many programs and a workspace that compacts.
func startReplicas(t *testing.T, database string, count int) *replicas {
	t.Helper()
	first := startOn(t, database, providerdouble.Config{Window: replicaWindow, KeepBodies: 1})
	r := &replicas{tenant: first.tenant("replicas"), addresses: []string{first.program.addr()}, programs: []*program{first.program}}
	for range count - 1 {
		other := &instance{t: t, config: first.config, log: &syncBuffer{}, double: first.double}
		other.config.Storage.DataDir = t.TempDir()
		other.boot()
		r.addresses, r.programs = append(r.addresses, other.program.addr()), append(r.programs, other.program)
	}
	for _, program := range r.programs {
		takesItsTime(program)
	}
	r.setPipelinef("ipc:\n  contextWindow: %d\n", replicaWindow)
	return r
}

// takesItsTime lets a program's modules plan for a minute, before its first prompt: on a busy machine they
// would exceed their deadline, and a prompt that they leave alone is too long for the provider.
func takesItsTime(program *program) {
	writer := program.sites[0].seams.writer
	if chain, is := writer.Chain.(*pipeline.Chain); is {
		writer.Chain = chain.WithDeadline(time.Minute)
	}
}

// chat is one session as a client sends it: each request as soon as the answer to the
// one before has ended.
type chat struct {
	name     string // may be empty: then its content tells it from others
	envelope *wire.Envelope
	ends     []int
}

// chats returns so many sessions, every other one without a name.
func (r *replicas) chats(count, turns int) []chat {
	r.t.Helper()
	all := make([]chat, count)
	for i := range all {
		session := sessiontest.Generate(uint64(100+i), sessiontest.Options{Turns: turns, Parallel: true, TargetTokens: 3 * replicaWindow, Signer: r.double})
		all[i].envelope, all[i].ends = requests(r.t, anthropic.New(), session.Body(session.Steps()-1))
		if i%2 == 0 {
			all[i].name = fmt.Sprintf("chat-%d", i)
		}
	}
	return all
}

// say sends one request of a session to a replica and reads the answer to its end.
func (r *replicas) say(ctx context.Context, address string, one chat, step int) error {
	body := one.envelope.Seal([]wire.Piece{{From: 0, To: one.ends[step]}})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/messages", strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+r.key)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Anthropic-Version", "2023-06-01")
	if one.name != "" {
		request.Header.Set("X-Claude-Code-Session-Id", one.name)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s request %d: status %d: %s", one.name, step, response.StatusCode, answer)
	}
	return err
}

// talk has the sessions at once, each request at a replica that pick names.
func (r *replicas) talk(all []chat, pick func(random *rand.Rand) string) {
	r.t.Helper()
	var talking sync.WaitGroup
	for i, one := range all {
		talking.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 7))
			for step := range one.ends {
				if err := r.say(r.t.Context(), pick(random), one, step); err != nil {
					r.t.Error(err)
					return
				}
			}
		})
	}
	talking.Wait()
}

// anywhere picks any replica.
func (r *replicas) anywhere(random *rand.Rand) string {
	return r.addresses[random.IntN(len(r.addresses))]
}

// busts counts the prompts of named sessions that did not begin with the one before.
func (r *replicas) busts() int {
	busts := 0
	for _, one := range r.double.Requests() {
		if one.Busted && !strings.HasPrefix(one.Conversation, "account-") {
			busts++
		}
	}
	return busts
}

// Sessions whose requests go to any of three replicas, each as soon as the answer before it
// has ended, have one main lane each, and break the provider's cache no more often than with
// one replica.
func TestSessionOverThreeReplicasIsOneLane(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 3)
	const sessions, turns = 10, 60
	busts, epochs := map[int]int{}, map[int]int{}
	for _, count := range []int{1, 3} {
		database := dbtest.New(t)
		r := startReplicas(t, database.OwnerURL, count)
		r.talk(r.chats(sessions, turns), r.anywhere)
		if t.Failed() {
			return
		}
		r.waitRecorded(database)
		owner := database.Owner(t)
		var lanes, split, stored int
		err := owner.QueryRow(t.Context(), `SELECT count(*), count(*) FILTER (WHERE lanes > 1), (SELECT count(*) FROM sessions)
			FROM (SELECT count(*) AS lanes FROM lanes WHERE kind = 'main' GROUP BY session_id) one`).Scan(&lanes, &split, &stored)
		if err != nil {
			t.Fatal(err)
		}
		if lanes != sessions || split != 0 || stored != sessions {
			t.Errorf("%d replicas: %d sessions, %d with a main lane, %d of them with several; want %d, %d, 0", count, stored, lanes, split, sessions, sessions)
		}
		made := 0
		if err := owner.QueryRow(t.Context(), "SELECT count(*) FROM epochs").Scan(&made); err != nil {
			t.Fatal(err)
		}
		busts[count], epochs[count] = r.busts(), made
		t.Logf("%d replicas: %d requests, %d busts of named sessions, %d epochs", count, len(r.double.Requests()), busts[count], made)
	}
	if epochs[1] == 0 {
		t.Fatal("no session outgrew its window")
	}
	// A prompt of about the target's size is compacted by one replica and not by another, as
	// each learns by itself how the provider counts, and on a busy machine a replica may not
	// hear of an epoch in time. Sessions that split make sixteen times as many busts.
	if most := busts[1] + busts[1]/2; busts[3] > most {
		t.Errorf("three replicas: %d busts, one: %d", busts[3], busts[1])
	}
}

// waitRecorded waits until every exchange stands in the database.
func (r *replicas) waitRecorded(database *dbtest.Database) {
	r.t.Helper()
	owner, want := database.Owner(r.t), 0
	for _, one := range r.double.Requests() {
		if one.Format != "" {
			want++
		}
	}
	r.until(func() bool {
		var have int
		if err := owner.QueryRow(r.t.Context(), "SELECT count(*) FROM exchanges").Scan(&have); err != nil {
			r.t.Fatal(err)
		}
		return have >= want
	})
}
