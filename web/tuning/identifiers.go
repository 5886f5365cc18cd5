package tuning

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/components"
)

// identifiersPart is the value of part that requests the page with the identifiers that prompts keep.
const identifiersPart = "identifiers"

// countWithin limits the time to count identifiers.
const countWithin = 15 * time.Second

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

// keeping is a row of the table: the number of identifiers that a setting keeps.
type keeping struct {
	Setting, TakenUp, Kept, Gone string
}

// rows are the rows of the saved setting and of this one.
func (i identifiers) rows() []keeping {
	row := func(setting string, held int) keeping {
		return keeping{setting, count(i.TakenUp), components.Share(int64(held), int64(i.TakenUp)), count(i.TakenUp - held)}
	}
	return []keeping{row("Saved setting", i.Held[0]), row("This setting", i.Held[1])}
}

// basis explains the count.
func (i identifiers) basis() string {
	return "Paths, symbols, names of errors and numbers that a turn uses again, and whether its prompt still had them. Counted in the text of " +
		components.Plural(int64(i.Sessions), "session") + "."
}

// figures returns the same for the table of all figures; nil if nothing was counted.
func (i identifiers) figures() []figure {
	if i.Sessions == 0 {
		return nil
	}
	return []figure{
		{Key: "identifiers_taken_up", Name: "Identifiers used again", Hint: "in the text of " + strconv.Itoa(i.Sessions) + " of the sessions", Saved: int64(i.TakenUp), Wanted: int64(i.TakenUp), words: components.Count},
		{Key: "identifiers_gone", Name: "Identifiers missing", Hint: "identifiers used again that the prompt no longer had", Saved: int64(i.TakenUp - i.Held[0]), Wanted: int64(i.TakenUp - i.Held[1]), words: components.Count},
	}
}
