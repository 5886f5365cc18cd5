package tuning

import (
	"strconv"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
)

// CSV answers with the preview's figures as a file. Without a preview, it shows the page with the reason.
func (p *Previewer) CSV(c echo.Context, who tenants.Principal) error {
	page, status, err := p.previewed(c, who)
	if err != nil {
		return err
	}
	if !page.Preview.Ready {
		return p.page.answer(c, status, who, page)
	}
	rows := [][]string{{"figure", "happened", "saved_setting", "this_setting", "change"}}
	for _, figure := range append(page.Preview.figures(), page.Preview.details()...) {
		rows = append(rows, figure.cells())
	}
	return layout.CSV(c, "palimpsest-preview.csv").WriteAll(rows)
}

// figure is a row of the preview: what happened, and the results of the saved setting and of this one.
type figure struct {
	Key, Name, Hint         string
	Happened, Saved, Wanted int64

	hasHappened bool // false if it is not recorded
	isUnknown   bool // neither setting's result is known
	words       func(int64) string
	thenWords   func(int64) string // of Happened; nil means words
	moreIsGood  bool
}

// figures returns the card's figures, except those that need the text of sessions.
func (m previewModel) figures() []figure {
	was, saved, wanted := m.Found.Was, m.Found.Saved, m.Found.Wanted
	share := func(tokens int64) string { return components.Share(tokens, wanted.Received) }
	shareThen := func(tokens int64) string { return components.Share(tokens, was.Received) }
	isRecorded := m.Ready && !m.Found.IsSample
	return []figure{
		{Key: "prompts_micro_usd", Name: "Paid for prompts", Hint: "at list prices, without the answers", Happened: was.Cost, Saved: saved.Cost, Wanted: wanted.Cost, hasHappened: isRecorded, words: components.Money},
		{Key: "net_micro_usd", Name: "Net saved", Hint: "against prompts without compression", Happened: was.Net, Saved: saved.Net, Wanted: wanted.Net, hasHappened: isRecorded, words: components.Money, moreIsGood: true},
		{Key: "tokens_verbatim", Name: "Read word for word", Hint: "of all tokens, sent unchanged", Happened: was.Verbatim, Saved: saved.Verbatim, Wanted: wanted.Verbatim, hasHappened: isRecorded && m.Found.HasLevels, words: share, thenWords: shareThen, moreIsGood: true},
		{Key: "tokens_at_l3", Name: "History reduced to an outline", Hint: "of all tokens", Happened: was.AtL3, Saved: saved.AtL3, Wanted: wanted.AtL3, hasHappened: isRecorded && m.Found.HasLevels, words: share, thenWords: shareThen},
		{Key: "tokens_sent", Name: "Tokens sent", Happened: was.Sent, Saved: saved.Sent, Wanted: wanted.Sent, hasHappened: isRecorded, words: components.Short},
		{Key: "tokens_received", Name: "Tokens received", Hint: "the same prompts, as clients sent them", Happened: was.Received, Saved: saved.Received, Wanted: wanted.Received, hasHappened: isRecorded, words: components.Short},
		{Key: "epochs", Name: "Compactions", Hint: "times that old turns were shortened", Happened: int64(was.Epochs), Saved: int64(saved.Epochs), Wanted: int64(wanted.Epochs), hasHappened: isRecorded, words: components.Count},
		{Key: "cache_rewrites", Name: "Times the cache was paid for again", Hint: "because old turns changed", Happened: int64(was.Rewrites), Saved: int64(saved.Rewrites), Wanted: int64(wanted.Rewrites), hasHappened: isRecorded, words: components.Count},
		{
			Key: "sessions_past_window", Name: "Sessions cut off", Hint: "by a prompt too long for the model",
			Happened: int64(was.TooLong), Saved: int64(saved.TooLong), Wanted: int64(wanted.TooLong), hasHappened: isRecorded, words: components.Count,
		},
	}
}

// cells returns the figure as a row of the file; a figure without a value is empty.
func (f figure) cells() []string {
	cells := []string{f.Key, "", "", "", ""}
	if f.hasHappened {
		cells[1] = strconv.FormatInt(f.Happened, 10)
	}
	if !f.isUnknown {
		cells[2], cells[3], cells[4] = strconv.FormatInt(f.Saved, 10), strconv.FormatInt(f.Wanted, 10), strconv.FormatInt(f.change(), 10)
	}
	return cells
}

func (f figure) change() int64 { return f.Wanted - f.Saved }

func (f figure) happenedWords() string {
	if !f.hasHappened {
		return "–"
	}
	if f.thenWords != nil {
		return f.thenWords(f.Happened)
	}
	return f.words(f.Happened)
}

func (f figure) savedWords() string { return f.known(f.Saved) }

func (f figure) wantedWords() string { return f.known(f.Wanted) }

func (f figure) known(value int64) string {
	if f.isUnknown {
		return "–"
	}
	return f.words(value)
}

// changeWords describes the difference of the two; "" if equal.
func (f figure) changeWords() string {
	switch change := f.change(); {
	case change == 0:
		return ""
	case change > 0:
		return "+" + f.words(change)
	default:
		return "−" + f.words(-change)
	}
}

func (f figure) isGood() bool { return f.change() != 0 && f.change() > 0 == f.moreIsGood }

func (f figure) isBad() bool { return f.change() != 0 && !f.isGood() }
