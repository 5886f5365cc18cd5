package preview

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fidelity"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// The limits for counting identifiers: sessions, bytes of each session, and bytes of all.
const (
	mostRead   = 10
	mostOfOne  = 8 << 20
	mostOfText = 24 << 20
)

// Texts gives access to the texts of sessions.
type Texts struct {
	Archive archive.Reader
	Codecs  map[conversation.Format]wire.Codec
	MayRead func(apiKey uuid.UUID) bool // whether the caller may read the sessions of an API key
	Within  time.Duration               // sessions that are not replayed by then don't count
}

// Identifiers is how many identifiers turns reuse from earlier ones, and how many of them the
// prompt before such a turn contains with each of some configs, see fidelity.Names.
type Identifiers struct {
	Sessions int // replayed
	TakenUp  int
	Held     []int // with each config
	Again    []int // messages that the model would have to get again, with each config

	// The same for the prompts as they were sent. Recorded is how many of the sessions still have them.
	Recorded, HeldThen, AgainThen int
}

// HasHappened reports whether it is known what the prompts as sent contained.
func (i *Identifiers) HasHappened() bool { return i.Sessions > 0 && i.Recorded == i.Sessions }

// Identifiers compares configs on the newest of the picked sessions whose text may be read. It
// replays the originals, which takes longer than Compare. saved is the config of the workspace.
func (p *Preview) Identifiers(ctx context.Context, workspace tenants.WorkspaceID, picked session.Selection, texts Texts, saved pipeline.Config, configs ...pipeline.Config) (Identifiers, error) {
	saves, err := p.remembered(ctx, workspace, picked, saved)
	if err != nil || saves.found.IsSample {
		return none(len(configs)), err
	}
	within, cancel := context.WithTimeout(ctx, texts.Within)
	defer cancel()
	found, err := p.identifiers(within, workspace, texts, saves.recorded, configs)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		err = nil // the rest took too long
	}
	return found, err
}

// none returns the result of some configs without a session.
func none(configs int) Identifiers {
	return Identifiers{Held: make([]int, configs), Again: make([]int, configs)}
}

// identifiers adds up the sessions. On a timeout it returns the finished ones with the error.
func (p *Preview) identifiers(ctx context.Context, workspace tenants.WorkspaceID, texts Texts, recorded []session.Recorded, configs []pipeline.Config) (Identifiers, error) {
	counter, err := tokens.NewCounter()
	if err != nil {
		return Identifiers{}, fmt.Errorf("token counter: %w", err)
	}
	readable, err := texts.readable(ctx, workspace, recorded)
	if err != nil {
		return Identifiers{}, err
	}
	each := make([]Identifiers, len(readable))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, one := range readable {
		group.Go(func() error {
			messages, err := texts.read(ctx, workspace, one, counter)
			if errors.Is(err, archive.ErrDamaged) || errors.Is(err, archive.ErrNotFound) {
				return nil
			}
			if err == nil {
				each[i], err = p.replay(ctx, one, messages, counter, configs)
			}
			if err == nil {
				err = p.happened(ctx, workspace, one, messages, &each[i])
			}
			return err
		})
	}
	err = group.Wait()
	sum := none(len(configs))
	for _, one := range each {
		sum.Sessions += one.Sessions
		sum.TakenUp += one.TakenUp
		sum.Recorded += one.Recorded
		sum.HeldThen += one.HeldThen
		sum.AgainThen += one.AgainThen
		for i, held := range one.Held {
			sum.Held[i] += held
			sum.Again[i] += one.Again[i]
		}
	}
	return sum, err
}

// readable returns the sessions that may be read, have all of their text, and are not too large.
func (t *Texts) readable(ctx context.Context, workspace tenants.WorkspaceID, recorded []session.Recorded) ([]*session.Recorded, error) {
	var readable []*session.Recorded
	left := mostOfText
	for i := range recorded {
		one := &recorded[i]
		if len(readable) == mostRead {
			break
		}
		if t.Codecs[one.Format] == nil || len(one.Requests) < 2 || !t.MayRead(one.APIKey) {
			continue
		}
		entries, err := t.Archive.Entries(ctx, workspace, one.Lane, 0, len(one.Messages))
		if err != nil {
			return nil, fmt.Errorf("sizes of lane %s: %w", one.Lane, err)
		}
		size := 0
		for _, entry := range entries {
			size += entry.Size
		}
		if len(entries) == len(one.Messages) && size <= min(left, mostOfOne) {
			readable, left = append(readable, one), left-size
		}
	}
	return readable, nil
}

// read returns the originals of a session.
func (t *Texts) read(ctx context.Context, workspace tenants.WorkspaceID, recorded *session.Recorded, counter *tokens.Counter) (talk, error) {
	entries, err := t.Archive.Originals(ctx, workspace, recorded.Lane, 0, len(recorded.Messages))
	if err != nil {
		return talk{}, fmt.Errorf("originals of lane %s: %w", recorded.Lane, err)
	}
	if len(entries) != len(recorded.Messages) {
		return talk{}, fmt.Errorf("originals of lane %s: %w", recorded.Lane, archive.ErrNotFound)
	}
	raw := make([][]byte, len(entries))
	for i, entry := range entries {
		raw[i] = entry.Raw
	}
	said := talk{codec: t.Codecs[recorded.Format], count: counter.Text}
	body := slices.Concat([]byte(`{"`+said.codec.List()+`":[`), bytes.Join(raw, []byte(",")), []byte("]}"))
	if said.body, err = wire.Open(body, said.codec.List()); err != nil {
		return talk{}, fmt.Errorf("open lane %s: %w", recorded.Lane, err)
	}
	var messages []conversation.Message
	for i := range said.body.Len() {
		digest, err := wire.Digest(said.codec, said.body.Element(i), func(message conversation.Message) int {
			messages = append(messages, message)
			return recorded.Messages[i].Tokens
		})
		if err != nil {
			return talk{}, fmt.Errorf("message %d of lane %s: %w", i, recorded.Lane, err)
		}
		said.digests = append(said.digests, digest)
	}
	said.names = fidelity.NamesOf(messages)
	return said, nil
}

// replay runs each config on a session.
func (p *Preview) replay(ctx context.Context, recorded *session.Recorded, messages talk, counter *tokens.Counter, configs []pipeline.Config) (Identifiers, error) {
	found := Identifiers{Sessions: 1}
	for i, config := range configs {
		if same := slices.IndexFunc(configs[:i], func(other pipeline.Config) bool { return reflect.DeepEqual(config, other) }); same >= 0 {
			found.Held, found.Again = append(found.Held, found.Held[same]), append(found.Again, found.Again[same])
			continue
		}
		ran, err := laneOf(compressing(config), p.models.Lookup(recorded.Model), recorded, ipc.New(counter.Message), messages).run(ctx)
		if err != nil {
			return Identifiers{}, err
		}
		found.TakenUp, found.Held, found.Again = ran.TakenUp, append(found.Held, ran.Held), append(found.Again, ran.Again)
	}
	return found, nil
}
