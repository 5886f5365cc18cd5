package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"palimpsest/pipeline/archive/export"
)

// outcome is the result of a run.
type outcome struct {
	requests  int // answered to the last byte
	retries   int // because their replica was killed
	failures  []string
	refused   int // prompts that violated a rule of the provider
	busts     []bust
	compacted int
	lanes     int // main ones
	sessions  int
	lost      []string // answered, but unrecorded or recorded without the answer
	missing   []string
	ready     []time.Duration
}

// String implements fmt.Stringer.
func (o outcome) String() string {
	slowest := time.Duration(0)
	if len(o.ready) > 0 {
		slowest = slices.Max(o.ready)
	}
	return fmt.Sprintf("%d requests answered, %d tried again after a kill, %d failed, %d refused by the provider, %d busts, %d compactions, %d sessions with %d main lanes, %d answers lost, %d originals missing, %d starts, the slowest %.1f s",
		o.requests, o.retries, len(o.failures), o.refused, len(o.busts), o.compacted, o.sessions, o.lanes, len(o.lost), len(o.missing), len(o.ready), slowest.Seconds())
}

// more is how many more busts three replicas may have than one: a twentieth, plus one for each of three
// sessions with prompts at the target's edge, since each replica learns on its own how the provider counts.
const more = 3

// judge returns an error that lists the violations.
func (o outcome) judge(alone outcome, ready time.Duration) error {
	var wrong []error
	for _, failure := range slices.Concat(o.failures, o.lost, o.missing) {
		wrong = append(wrong, errors.New(failure))
	}
	if o.refused > 0 {
		wrong = append(wrong, fmt.Errorf("the provider refused %d prompts", o.refused))
	}
	if most := len(alone.busts) + len(alone.busts)/20 + more; len(o.busts) > most {
		wrong = append(wrong, fmt.Errorf("%d busts, more than %d", len(o.busts), most))
	}
	for _, took := range o.ready {
		if took > ready {
			wrong = append(wrong, fmt.Errorf("a replica was ready after %s only", took))
		}
	}
	if alone.compacted == 0 || o.requests == 0 {
		wrong = append(wrong, errors.New("no session was compacted, so this proves little"))
	}
	return errors.Join(wrong...)
}

// besides returns those of o's busts that other, with the same sessions, did not have.
func (o outcome) besides(other outcome) (lines []string) {
	for _, one := range o.busts {
		if !slices.ContainsFunc(other.busts, func(b bust) bool { return b.session == one.session && b.step == one.step }) {
			lines = append(lines, fmt.Sprintf("%s, request %d: %s", one.session, one.step, one.where))
		}
	}
	return lines
}

// recordTime limits how long answered requests may wait to be recorded after the last fault.
const recordTime = time.Minute

// look waits until everything is recorded, and compares that with the sent requests.
func (s *stack) look(ctx context.Context, talks *talks) (outcome, error) {
	result := outcome{requests: len(talks.answered), retries: talks.retries, failures: talks.failures, ready: talks.ready, refused: s.double.Rejected(), busts: talks.busts}
	direct, err := s.owner("")
	if err != nil {
		return result, err
	}
	connection, err := pgx.Connect(ctx, direct)
	if err != nil {
		return result, err
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }()
	for began := time.Now(); ; {
		rows, err := connection.Query(ctx, `SELECT t.id::text || CASE WHEN e.id IS NULL THEN ' is not recorded' ELSE ' is recorded without its answer' END
			FROM unnest($1::uuid[]) AS t (id) LEFT JOIN exchanges e ON e.id = t.id WHERE e.answer IS NULL`, talks.answered)
		if err != nil {
			return result, err
		}
		if result.lost, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return result, err
		}
		if len(result.lost) == 0 || time.Since(began) > recordTime {
			break
		}
		if err := sleep(ctx, healthEvery); err != nil {
			return result, err
		}
	}
	err = connection.QueryRow(ctx, `SELECT (SELECT count(*) FROM epochs), (SELECT count(*) FROM lanes WHERE kind = 'main'), (SELECT count(*) FROM sessions)`).
		Scan(&result.compacted, &result.lanes, &result.sessions)
	if err != nil {
		return result, err
	}
	result.missing, err = s.missing(ctx, talks)
	return result, err
}

// missing exports every session, verifies it, and lists the messages that clients sent but no export holds.
func (s *stack) missing(ctx context.Context, talks *talks) ([]string, error) {
	var list struct {
		Data []struct{ ID string }
	}
	if err := s.account.Call(ctx, http.MethodGet, "/sessions?limit=200", nil, &list); err != nil {
		return nil, err
	}
	held := map[string]bool{}
	var wrong []string
	for _, one := range list.Data {
		lines, err := s.exported(ctx, one.ID)
		if err != nil {
			return nil, err
		}
		if _, err := export.Verify(bytes.NewReader(lines), func(fault export.Fault) { wrong = append(wrong, "session "+one.ID+": "+fault.String()) }); err != nil {
			return nil, err
		}
		for scanner := bufio.NewReader(bytes.NewReader(lines)); ; {
			line, err := scanner.ReadBytes('\n')
			if err != nil {
				break
			}
			var message struct {
				Type   string `json:"type"`
				SHA256 string `json:"sha256"`
			}
			if json.Unmarshal(line, &message) == nil && message.Type == "message" {
				held[message.SHA256] = true
			}
		}
	}
	for _, one := range talks.sessions {
		for i := range one.ends[len(one.ends)-1] {
			sum := sha256.Sum256(one.envelope.Element(i))
			if !held[hex.EncodeToString(sum[:])] {
				wrong = append(wrong, fmt.Sprintf("%s: message %d is in no export", one.name, i))
			}
		}
	}
	return wrong, nil
}

func (s *stack) exported(ctx context.Context, id string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.replicas[0].url()+"/api/v1/sessions/"+id+"/export", http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := s.account.HTTP.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	lines, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("export of session %s: status %d: %.200s", id, response.StatusCode, lines)
	}
	return lines, err
}

// sortByName sorts faults by name.
func sortByName(all []fault) {
	slices.SortFunc(all, func(a, b fault) int { return strings.Compare(a.name, b.name) })
}
