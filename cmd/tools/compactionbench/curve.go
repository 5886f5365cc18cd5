package compactionbench

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"palimpsest/pipeline/fidelity"
	"palimpsest/pipeline/modules/ipc"
)

// maskingKeeps is how many of the newest turns the client that masks old results leaves unchanged.
const maskingKeeps = 10

// forgetMasked measures a client that replaces all tool results except the newest turns' by placeholders. It
// may get the same result again after as many requests.
func (f *Forgetting) forgetMasked(r *reading, prices Prices, pace Pace) {
	chosen := newMasking(r)
	chosen.keeps = maskingKeeps
	f.Masking, _ = charge(r, chosen, prices, pace)
	var text strings.Builder
	var now *standing
	from := 0
	for request, length := range r.ends {
		turns := r.turnsOf(length)
		if len(turns) <= maskingKeeps {
			continue
		}
		for ; from < turns[len(turns)-maskingKeeps].From; from++ {
			text.WriteString(fidelity.Written(&r.messages[from].Message) + "\n")
		}
		if now == nil || request-now.request >= maskingKeeps {
			now = &standing{request: request, sides: []side{newSide(&f.Masked, "")}}
		}
		now.length, now.sides[0].text = from, text.String()
		f.used(r, now, request, r.tokens(r.fixed.Tokens+sizeOf(chosen.prompts(length)[0].forms)), prices)
	}
	if now != nil {
		f.noteKept(r, now)
	}
}

// CompressTo returns the rule of the window with a goal.
func CompressTo(share float64) Variant {
	return Variant{fmt.Sprintf("compressTo %.2f", share), func(config *ipc.Config) { config.CompressTo = share }}
}

// Way is what one way to compact costs and forgets, on the sessions tuned on and on those kept apart.
type Way struct {
	Window int
	Name   string
	Parts  [2]Point
}

// Point is a place on the curve of cost against fidelity.
type Point struct {
	Prompts, None                        float64 // cost, ours and without compaction
	Recovery                             float64
	Recoveries, Lost, Sessions, Requests int
	TooLong                              int
}

// Ways are ways to compact.
type Ways []Way

// Ways measures ways to compact on the recorded sessions of a directory, behind a fixed part.
func (b *Bench) Ways(ctx context.Context, suite Suite) (Ways, error) {
	files, err := filepath.Glob(filepath.Join(suite.Data, "transcripts", "*.anthropic.json"))
	if err != nil {
		return nil, fmt.Errorf("find transcripts: %w", err)
	}
	var all Ways
	for _, window := range []int{smallWindow, bigWindow, millionWindow} {
		variants := []Variant{CompressTo(0.15), CompressTo(0.40), BreakEven(50_000)}
		if window == millionWindow {
			variants = variants[2:]
		}
		if suite.Note != nil {
			suite.Note(fmt.Sprintf("ways to compact in %d", window))
		}
		found, err := b.ways(ctx, files, window, variants)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// ways measures all ways to compact in a window.
func (b *Bench) ways(ctx context.Context, files []string, window int, variants []Variant) (Ways, error) {
	found := make([][]*Forgetting, len(files))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, file := range files {
		group.Go(func() error {
			talk, err := Recorded(file, window)
			if err == nil {
				talk, err = talk.WithFixed(fixedTokens)
			}
			if err != nil {
				return err
			}
			r, err := read(&talk, b.counter)
			if err != nil {
				return err
			}
			for _, variant := range variants {
				one, err := forget(ctx, r, b.with(variant), Anthropic(), Warm())
				if err != nil {
					return err
				}
				found[i] = append(found[i], one)
			}
			found[i][0].forgetItself(r, Anthropic(), Warm())
			found[i][0].forgetMasked(r, Anthropic(), Warm())
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	sums := make([][2]Forgetting, len(variants))
	for i, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		part := 0
		if slices.Contains(apart, name) {
			part = 1
		}
		for j := range variants {
			sums[j][part].Add(found[i][j])
		}
	}
	var all Ways
	add := func(name string, of *[2]Forgetting, side func(*Forgetting) (*Bill, *Kept)) {
		way := Way{Window: window, Name: name}
		for part := range of {
			f := &of[part]
			bill, kept := side(f)
			way.Parts[part] = Point{
				Prompts: bill.Cost, None: f.Original.Cost, Recovery: kept.Recovery,
				Recoveries: kept.Recoveries, Lost: kept.Lost, Sessions: f.Sessions, Requests: f.Requests, TooLong: bill.TooLong,
			}
		}
		all = append(all, way)
	}
	add(NoCompression, &sums[0], func(f *Forgetting) (*Bill, *Kept) { return &f.Original, &Kept{} })
	add(SelfCompacting, &sums[0], func(f *Forgetting) (*Bill, *Kept) { return &f.Itself, &f.Client })
	add("masking all but 10", &sums[0], func(f *Forgetting) (*Bill, *Kept) { return &f.Masking, &f.Masked })
	for j, variant := range variants {
		add("**"+variant.Name+"**", &sums[j], func(f *Forgetting) (*Bill, *Kept) { return &f.Bill, &f.Ours })
		add("a sliding window of that size", &sums[j], func(f *Forgetting) (*Bill, *Kept) { return &f.Bill, &f.Sliding })
	}
	return all, nil
}

// Markdown returns a table.
func (all Ways) Markdown() string {
	var text strings.Builder
	text.WriteString("| window | way | cost of prompts | recoveries per 100 requests | cost with recoveries | lost per session | prompts too long |\n")
	text.WriteString("|" + strings.Repeat(" --- |", 7) + "\n")
	for i := range all {
		way := &all[i]
		both := func(format string, of func(*Point) float64) string {
			return fmt.Sprintf(format+" · "+format, of(&way.Parts[0]), of(&way.Parts[1]))
		}
		fmt.Fprintf(&text, "| %d | %s | %s %% | %s | %s %% | %s | %s %% |\n", way.Window, way.Name,
			both("%+.1f", func(p *Point) float64 { return 100 * (p.Prompts/p.None - 1) }),
			both("%.1f", func(p *Point) float64 { return 100 * float64(p.Recoveries) / float64(p.Requests) }),
			both("%+.1f", func(p *Point) float64 { return 100 * ((p.Prompts+p.Recovery)/p.None - 1) }),
			both("%.1f", func(p *Point) float64 { return float64(p.Lost) / float64(p.Sessions) }),
			both("%.1f", func(p *Point) float64 { return 100 * float64(p.TooLong) / float64(p.Requests) }))
	}
	return text.String()
}
