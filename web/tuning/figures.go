package tuning

import (
	"strconv"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
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
	for _, figure := range page.Preview.figures() {
		rows = append(rows, []string{
			figure.Key, figure.recorded(), strconv.FormatInt(figure.Saved, 10), strconv.FormatInt(figure.Wanted, 10), strconv.FormatInt(figure.change(), 10),
		})
	}
	return layout.CSV(c, "palimpsest-preview.csv").WriteAll(rows)
}

// Explanations of the figures.
const (
	netHint      = "cost of the prompts without compression, as far as they could have been sent, minus their cost with it, at list prices"
	rewritesHint = "compactions while the provider’s cache was warm"
	atL3Hint     = "share of the tokens from clients that is sent as an outline of requests"
)

// figure is a row of the preview: what happened, and the results of the saved setting and of this one.
type figure struct {
	Key, Name, Hint         string
	Happened, Saved, Wanted int64

	hasHappened bool // false if it is not recorded
	words       func(int64) string
	moreIsGood  bool
}

// figures returns the card's figures.
func (m previewModel) figures() []figure {
	was, saved, wanted := m.Found.Was, m.Found.Saved, m.Found.Wanted
	share := func(tokens int64) string { return components.Share(tokens, wanted.Received) }
	isRecorded := m.Ready && !m.Found.IsSample
	return append([]figure{
		{Key: "prompts_micro_usd", Name: "Paid for prompts", Hint: "at list prices, without the answers", Happened: was.Cost, Saved: saved.Cost, Wanted: wanted.Cost, hasHappened: isRecorded, words: components.Money},
		{Key: "net_micro_usd", Name: "Net saved", Hint: netHint, Happened: was.Net, Saved: saved.Net, Wanted: wanted.Net, hasHappened: isRecorded, words: components.Money, moreIsGood: true},
		{Key: "tokens_verbatim", Name: "Read word for word", Hint: "share of the tokens from clients that is sent unchanged", Saved: saved.Verbatim, Wanted: wanted.Verbatim, words: share, moreIsGood: true},
		{Key: "tokens_at_l3", Name: "History reduced to an outline", Hint: atL3Hint, Saved: saved.AtL3, Wanted: wanted.AtL3, words: share},
		{Key: "tokens_sent", Name: "Tokens sent", Happened: was.Sent, Saved: saved.Sent, Wanted: wanted.Sent, hasHappened: isRecorded, words: components.Short},
		{Key: "tokens_received", Name: "Tokens received", Hint: "of the same prompts, as the clients sent them", Happened: was.Received, Saved: saved.Received, Wanted: wanted.Received, hasHappened: isRecorded, words: components.Short},
		{Key: "epochs", Name: "Compactions", Hint: "steps in which a prompt was compressed", Happened: int64(was.Epochs), Saved: int64(saved.Epochs), Wanted: int64(wanted.Epochs), hasHappened: isRecorded, words: components.Count},
		{Key: "cache_rewrites", Name: "Times the cache was paid for again", Hint: rewritesHint, Saved: int64(saved.Rewrites), Wanted: int64(wanted.Rewrites), words: components.Count},
		{
			Key: "sessions_past_window", Name: "Sessions cut off", Hint: "with a prompt too long for the provider",
			Happened: int64(was.TooLong), Saved: int64(saved.TooLong), Wanted: int64(wanted.TooLong), hasHappened: isRecorded, words: components.Count,
		},
	}, m.Identifiers.figures()...)
}

// csvPath is the address of the figures as a file, with the identifiers if shown.
func (m previewModel) csvPath() string {
	if m.HasIdentifiers {
		return paths.With(paths.PreviewCSV, part, identifiersPart)
	}
	return paths.PreviewCSV
}

func (f figure) change() int64 { return f.Wanted - f.Saved }

// recorded is the recorded figure; "" if it is not recorded.
func (f figure) recorded() string {
	if !f.hasHappened {
		return ""
	}
	return strconv.FormatInt(f.Happened, 10)
}

func (f figure) happenedWords() string {
	if !f.hasHappened {
		return "–"
	}
	return f.words(f.Happened)
}

func (f figure) savedWords() string { return f.words(f.Saved) }

func (f figure) wantedWords() string { return f.words(f.Wanted) }

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
