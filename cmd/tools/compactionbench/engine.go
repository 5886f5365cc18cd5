package compactionbench

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/sessiontest"
	"palimpsest/tenants"
)

// Engine is the time of our own work on a large body at an epoch, without the archive.
type Engine struct {
	Bytes int           `json:"bytes"`
	First time.Duration `json:"first_ns"` // no message was known
	P50   time.Duration `json:"p50_ns"`   // every message was known
	P99   time.Duration `json:"p99_ns"`
}

// Epoch runs an epoch of a body of about 800 KB a number of times, each in its own session.
func (b *Bench) Epoch(ctx context.Context, times int) (Engine, error) {
	generated := sessiontest.Generate(1, sessiontest.Options{Turns: 300, Parallel: true, TargetTokens: 210_000})
	body := generated.Body(generated.Steps() - 1)
	writer, err := prompt.NewWriter(session.NewMemory(), b.counter, pipeline.NewChain(modules.All(b.counter, modules.Memory{})...))
	if err != nil {
		return Engine{}, fmt.Errorf("writer: %w", err)
	}
	engine := Engine{Bytes: len(body)}
	var elapsed []time.Duration
	for i := range times + 1 {
		began := time.Now()
		written, err := writer.Write(ctx, prompt.Request{
			Scope: session.Scope{Workspace: tenants.NewWorkspaceID(), APIKey: uuid.New(), Format: conversation.Anthropic},
			Codec: anthropic.New(), Config: b.Pipeline, Body: body, Headers: http.Header{"X-Palimpsest-Session-Id": {strconv.Itoa(i)}},
		})
		if err != nil {
			return Engine{}, fmt.Errorf("write prompt: %w", err)
		}
		took := time.Since(began) - written.Archiving
		if written.Exchange.Report.Archived == 0 {
			return Engine{}, fmt.Errorf("no epoch: %+v", written.Exchange.Report)
		}
		if i == 0 {
			engine.First = took
			continue
		}
		elapsed = append(elapsed, took)
	}
	slices.Sort(elapsed)
	engine.P50, engine.P99 = elapsed[len(elapsed)/2], elapsed[len(elapsed)*99/100]
	return engine, nil
}
