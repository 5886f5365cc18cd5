package tuning

import (
	"cmp"
	"context"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/components"
)

// detailsPart is the value of part that requests only the figures that need the text of sessions.
const detailsPart = "details"

// countWithin limits the time to count identifiers.
const countWithin = 5 * time.Second

// identifiers counts the identifiers that settings keep for later turns.
type identifiers struct {
	preview.Identifiers

	MayNot bool // the person may not read messages, so nothing was counted
}

// identifiers counts the identifiers kept by several settings, in the sessions that a person may read.
func (p *Previewer) identifiers(ctx context.Context, who tenants.Principal, picked session.Selection, saved pipeline.Config, each ...pipeline.Config) (identifiers, error) {
	reader, err := p.deps.Readers.Reader(ctx, who.Workspace.ID, who.User.ID)
	if err != nil || reader.None() {
		return identifiers{MayNot: true}, err
	}
	texts := preview.Texts{Archive: p.deps.Archive, Codecs: p.deps.Codecs, MayRead: reader.MayRead, Within: cmp.Or(p.deps.Within, countWithin)}
	found, err := p.deps.Compares.Identifiers(ctx, who.Workspace.ID, picked, texts, saved, each...)
	return identifiers{Identifiers: found}, err
}

// details returns the figures that need the text of sessions.
func (m previewModel) details() []figure {
	found := m.Identifiers
	share := func(held int64) string { return components.Share(held, int64(found.TakenUp)) }
	rows := []figure{
		{Key: "identifiers_taken_up", words: components.Count},
		{Key: "identifiers_held", Name: "Details still there when needed", Hint: "names, paths and values used again", words: share, moreIsGood: true},
		{Key: "messages_again", Name: "Work repeated because it was forgotten", Hint: "files and results to get again", words: components.Count},
	}
	if found.Sessions == 0 {
		for i := range rows {
			rows[i].isUnknown = true
		}
		return rows
	}
	rows[0].Saved, rows[0].Wanted = int64(found.TakenUp), int64(found.TakenUp)
	rows[1].Saved, rows[1].Wanted = int64(found.Held[0]), int64(found.Held[1])
	rows[2].Saved, rows[2].Wanted = int64(found.Again[0]), int64(found.Again[1])
	if found.HasHappened() {
		rows[0].Happened, rows[1].Happened, rows[2].Happened = int64(found.TakenUp), int64(found.HeldThen), int64(found.AgainThen)
		rows[0].hasHappened, rows[1].hasHappened, rows[2].hasHappened = true, true, true
	}
	return rows
}

// basis explains what the details were counted in, or why they were not.
func (m previewModel) basis() string {
	switch {
	case !m.HasIdentifiers:
		return "The last two rows are being counted in the text of your sessions."
	case m.Identifiers.MayNot:
		return "The last two rows need the text of sessions, which you may not read."
	case m.Found.IsSample:
		return "The last two rows need the text of sessions, which the invented ones don’t have."
	case m.Identifiers.Sessions == 0:
		return "The last two rows were not counted: the text is too long, no longer kept, or not readable for you."
	case !m.Identifiers.HasHappened():
		return "The last two rows were counted in the text of " + components.Plural(int64(m.Identifiers.Sessions), "session") + ". What happened is unknown: prompts as sent are no longer kept."
	default:
		return "The last two rows were counted in the text of " + components.Plural(int64(m.Identifiers.Sessions), "session") + "."
	}
}

// remembers is the difference in details in a sentence, or "" if they were not counted.
func (m previewModel) remembers() string {
	found := m.Identifiers
	if found.Sessions == 0 || found.TakenUp == 0 {
		return ""
	}
	was, will := components.Share(int64(found.Held[0]), int64(found.TakenUp)), components.Share(int64(found.Held[1]), int64(found.TakenUp))
	said := "When the model needed a detail again, its prompt still had it in " + will + " of cases"
	if was != will {
		said += " instead of " + was
	}
	return said + "."
}
