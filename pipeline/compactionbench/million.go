package compactionbench

import (
	"context"
	"fmt"

	"palimpsest/pipeline"
)

// millionWindow is a window that no session comes near.
const millionWindow = 1_000_000

// Variant is a way to set Ours.
type Variant struct {
	Name   string
	Change func(*pipeline.IPCConfig)
}

// BreakEven returns the rule of rent or buy above so many tokens.
func BreakEven(minContext int) Variant {
	return Variant{fmt.Sprintf("break-even above %dk", minContext/1000), func(config *pipeline.IPCConfig) {
		config.Trigger, config.MinContext = pipeline.TriggerBreakEven, minContext
	}}
}

// FixedWindow returns the other rule in a window that is set by hand.
func FixedWindow(window int) Variant {
	return Variant{fmt.Sprintf("window of %dk", window/1000), func(config *pipeline.IPCConfig) {
		config.ContextWindow = pipeline.Window(window)
	}}
}

// with returns the pipeline of a variant.
func (b *Bench) with(variant Variant) pipeline.Config {
	config := b.Pipeline
	variant.Change(&config.IPC)
	return config
}

// Million runs policies and variants of Ours on a session in a window that it does not
// come near.
func (b *Bench) Million(ctx context.Context, talk *Talk, prices Prices, pace Pace, policies []string, variants ...Variant) ([]Row, error) {
	r, err := read(talk, b.counter)
	if err != nil {
		return nil, err
	}
	r.looksBack = pace.Every == 0 && prices == Anthropic()
	var rows []Row
	none := modelled(r, NoCompression, prices, pace)
	for _, name := range policies {
		rows = append(rows, modelled(r, name, prices, pace))
	}
	for _, variant := range variants {
		ours, err := proxy(ctx, r, b.with(variant), prices, pace)
		if err != nil {
			return nil, err
		}
		row := ours.row(r)
		row.Policy = variant.Name
		rows = append(rows, row)
	}
	for i := range rows {
		row := &rows[i]
		row.Session, row.Window, row.Prices, row.Pace = talk.Name, talk.Window, prices.Name, pace.Name
		row.None, row.Worst = row.against(none.Bill), row.worst(&none.Bill)
	}
	return rows, nil
}
