package miner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

const (
	// Every is how often Pass is to be called.
	Every = 10 * time.Minute
	// Timeout bounds a Pass; what is not read by then is read by the next.
	Timeout = 9 * time.Minute

	// Quiet is how long a lane must have been without a request before it is read:
	// then it is known how its errors ended, and it is not read at each turn.
	Quiet = 30 * time.Minute

	lanesAtOnce = 100       // of a workspace, in one pass
	maxBytes    = 128 << 20 // of a lane; larger ones are left out
)

// Lane is a lane that has gone on since it was read last.
type Lane struct {
	ID      uuid.UUID
	Session uuid.UUID
	Format  conversation.Format
	LastAt  time.Time // of its newest request
}

// Occurrence is a Finding at its place in the archive.
type Occurrence struct {
	Finding

	Hash conversation.Hash // of the message
	At   time.Time
}

// Changes counts what a pass over a workspace changed.
type Changes struct {
	Forged   int // became candidates
	Approved int // without anybody, where the review is "auto"
	Disabled int // were not met for long
}

// Store keeps what is found. All is of one workspace.
type Store interface {
	// Workspaces returns all workspaces.
	Workspaces(ctx context.Context) ([]tenants.WorkspaceID, error)

	// Due returns the main lanes whose newest request came before a moment and after
	// they were read last, the oldest first.
	Due(ctx context.Context, workspace tenants.WorkspaceID, before time.Time, limit int) ([]Lane, error)

	// Pattern returns patterns.ErrNotFound if the workspace has no such pattern.
	Pattern(ctx context.Context, tenant tenants.Tenant, id uuid.UUID) (patterns.Pattern, error)

	// Read keeps what a lane teaches, in place of what it taught before, and notes
	// that the lane was read, in one transaction.
	Read(ctx context.Context, workspace tenants.WorkspaceID, lane Lane, met []Occurrence, uses []Use) error

	// Finalize has patterns become candidates, approves them where auto says so, and
	// disables and deletes those not met for long.
	Finalize(ctx context.Context, workspace tenants.WorkspaceID, now time.Time, auto bool, minRate float64) (Changes, error)
}

// Config is what a Miner needs.
type Config struct {
	Store   Store
	Archive archive.Reader
	Inserts session.Records
	Codecs  map[conversation.Format]wire.Codec

	// Settings returns a workspace's pipeline.
	Settings func(ctx context.Context, workspace tenants.WorkspaceID) (pipeline.Config, error)

	Log *slog.Logger
	Now func() time.Time
}

// Miner reads recorded lanes for patterns. What it keeps of a lane is the same however
// often it reads it, and a pass that is cut off goes on with the next lane.
type Miner struct{ config Config }

// New returns a Miner.
func New(config Config) *Miner { return &Miner{config: config} }

// Pass reads the lanes of all workspaces that have gone on and are quiet now. A
// workspace that fails does not keep the others from being read.
func (m *Miner) Pass(ctx context.Context) error {
	workspaces, err := m.config.Store.Workspaces(ctx)
	if err != nil {
		return fmt.Errorf("mine patterns: %w", err)
	}
	var failures []error
	for _, workspace := range workspaces {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := m.Workspace(ctx, workspace); err != nil {
			failures = append(failures, fmt.Errorf("mine patterns of workspace %s: %w", workspace, err))
		}
	}
	return errors.Join(failures...)
}

// Workspace reads the lanes of one workspace and settles what becomes of its patterns.
// One whose pipeline is without the module keeps what it has.
func (m *Miner) Workspace(ctx context.Context, workspace tenants.WorkspaceID) (Changes, error) {
	config, err := m.config.Settings(ctx, workspace)
	if err != nil || !config.Runs(patterns.Name) {
		return Changes{}, err
	}
	lanes, err := m.config.Store.Due(ctx, workspace, m.config.Now().Add(-Quiet), lanesAtOnce)
	if err != nil {
		return Changes{}, err
	}
	for _, lane := range lanes {
		if err := m.lane(ctx, workspace, lane); err != nil {
			return Changes{}, fmt.Errorf("lane %s: %w", lane.ID, err)
		}
	}
	auto := pipeline.SettingsOf[patterns.Config](config).Review == patterns.ReviewAuto
	settled, err := m.config.Store.Finalize(ctx, workspace, m.config.Now(), auto, pipeline.SettingsOf[patterns.Config](config).MinSuccessRate)
	if err != nil {
		return Changes{}, err
	}
	if settled != (Changes{}) {
		m.config.Log.InfoContext(ctx, "patterns.forged", "workspace", workspace, "lanes", len(lanes),
			"candidates", settled.Forged, "approved", settled.Approved, "disabled", settled.Disabled)
	}
	return settled, nil
}

// lane reads one lane. One that cannot be read, because it is damaged, is noted as
// read and teaches nothing.
func (m *Miner) lane(ctx context.Context, workspace tenants.WorkspaceID, lane Lane) error {
	entries, err := m.originals(ctx, workspace, lane)
	if err != nil {
		return err
	}
	raw := make([]json.RawMessage, len(entries))
	for i := range entries {
		raw[i] = entries[i].Raw
	}
	codec, known := m.config.Codecs[lane.Format]
	if !known || len(raw) == 0 {
		return m.config.Store.Read(ctx, workspace, lane, nil, nil)
	}
	h, err := readHistory(codec, raw)
	if err != nil {
		m.config.Log.WarnContext(ctx, "lane teaches no patterns", "lane", lane.ID, "error", err)
		return m.config.Store.Read(ctx, workspace, lane, nil, nil)
	}
	var met []Occurrence
	for _, finding := range find(h) {
		met = append(met, Occurrence{Finding: finding, Hash: h.hashes[finding.Message], At: entries[finding.Message].StoredAt})
	}
	uses, err := m.uses(ctx, workspace, lane, h)
	if err != nil {
		return err
	}
	return m.config.Store.Read(ctx, workspace, lane, met, uses)
}

// originals returns the messages of a lane as far as they are archived without a gap;
// none if they are damaged or too large.
func (m *Miner) originals(ctx context.Context, workspace tenants.WorkspaceID, lane Lane) ([]archive.Entry, error) {
	const all = 1 << 30
	index, err := m.config.Archive.Entries(ctx, workspace, lane.ID, 0, all)
	if err != nil {
		return nil, err
	}
	size := 0
	for i, entry := range index {
		if size += entry.Size; entry.Index != i {
			index = index[:i]
			break
		}
	}
	if size > maxBytes || len(index) == 0 {
		return nil, nil
	}
	entries, err := m.config.Archive.Originals(ctx, workspace, lane.ID, 0, len(index))
	if errors.Is(err, archive.ErrDamaged) {
		m.config.Log.WarnContext(ctx, "lane teaches no patterns", "lane", lane.ID, "error", err)
		return nil, nil
	}
	return entries, err
}

// uses returns the patterns that were put into a lane.
func (m *Miner) uses(ctx context.Context, workspace tenants.WorkspaceID, lane Lane, h *history) ([]Use, error) {
	inserts, err := m.config.Inserts.Inserts(ctx, workspace, lane.ID)
	if err != nil {
		return nil, err
	}
	var uses []Use
	for item, message := range placed(inserts) {
		id, err := uuid.Parse(item)
		if err != nil {
			continue
		}
		p, err := m.config.Store.Pattern(ctx, workspace, id)
		if errors.Is(err, patterns.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		uses = append(uses, Use{Pattern: p, Helped: helped(h, &p, message)})
	}
	return uses, nil
}
