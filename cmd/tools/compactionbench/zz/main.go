package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"palimpsest/cmd/tools/compactionbench"
	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
)

var heldOut = map[string]bool{"cc-joined-bc": true, "cc-joined-f0": true, "cc-single-f4": true, "cc-single-ec": true, "cc-manysmall-18": true, "openhands-multiswe-2": true}

func main() {
	var set []string
	flag.Func("set", "", func(s string) error { set = append(set, s); return nil })
	windows := flag.String("w", "64000,200000", "")
	fixed := flag.String("f", "0,19000", "")
	only := flag.String("only", "cc-,pi-,tau", "")
	out := flag.Bool("heldout", false, "")
	flag.Parse()
	bench, err := compactionbench.New()
	if err != nil {
		panic(err)
	}
	layers := []pipeline.Layer{{Source: pipeline.FromDefault, Modules: strings.Join(bench.Pipeline.Modules, ",")}}
	for _, s := range set {
		name, value, _ := strings.Cut(s, "=")
		module, field, _ := strings.Cut(name, ".")
		layers = append(layers, pipeline.Layer{Source: pipeline.FromHeader, YAML: module + ":\n  " + field + ": " + value + "\n"})
	}
	config, _, err := modules.Catalog().Resolve(layers...)
	if err != nil {
		panic(err)
	}
	bench.Pipeline = config
	files, _ := filepath.Glob("/work/shared/data/transcripts/*.anthropic.json")
	fmt.Printf("%-13s %4s %17s %5s | %6s %6s | %6s %6s | %6s %6s | %6s %6s %6s | %4s %4s %4s | %7s %7s %7s %7s\n", "", "comp", "verbatim", "cliff", "names", "window", "unrep", "window", "edits", "window", "typed", "second", "tasks", "rec", "win", "cli", "cost", "+rec", "client", "busts")
	for w := range strings.SplitSeq(*windows, ",") {
		for f := range strings.SplitSeq(*fixed, ",") {
			var window, more int
			fmt.Sscan(w, &window)
			fmt.Sscan(f, &more)
			sum := &compactionbench.Forgetting{}
			var mu sync.Mutex
			var group sync.WaitGroup
			gate := make(chan struct{}, 2)
			for _, file := range files {
				name, _, _ := strings.Cut(filepath.Base(file), ".")
				if heldOut[name] != *out || !slices.ContainsFunc(strings.Split(*only, ","), func(p string) bool { return strings.HasPrefix(name, p) }) {
					continue
				}
				group.Go(func() {
					gate <- struct{}{}
					defer func() { <-gate }()
					talk, err := compactionbench.Recorded(file, window)
					if err == nil {
						talk, err = talk.WithFixed(more)
					}
					if err != nil {
						panic(err)
					}
					got, err := bench.Forget(context.Background(), &talk, compactionbench.Anthropic(), compactionbench.Warm())
					if err != nil {
						fmt.Fprintln(os.Stderr, name, err)
						return
					}
					mu.Lock()
					sum.Add(got)
					mu.Unlock()
				})
			}
			group.Wait()
			slices.Sort(sum.Verbatim)
			p := func(q int) int {
				if len(sum.Verbatim) == 0 {
					return 0
				}
				return sum.Verbatim[min(len(sum.Verbatim)-1, len(sum.Verbatim)*q/100)]
			}
			pc := func(s compactionbench.Share) string {
				if s.Of == 0 {
					return "–"
				}
				return fmt.Sprintf("%.1f", 100*float64(s.Kept)/float64(s.Of))
			}
			o, v := sum.Ours, sum.Sliding
			fmt.Printf("%-13s %4d %5d %5d %5d %5d | %6s %6s | %6s %6s | %6s %6s | %6s %6s %6s | %4.1f %4.1f %4.1f | %7.1f %7.1f %7.1f %7.2f   (unrep of %d, edits of %d, typed %d tasks %d)\n", w+" +"+f, sum.Compactions, p(10), p(50), p(90), sum.Cliffs,
				pc(o.Names), pc(v.Names), pc(o.Unrepeated), pc(v.Unrepeated), pc(o.Edits), pc(v.Edits), pc(o.Typed), pc(o.Second), pc(o.Tasks),
				100*float64(o.Recoveries)/float64(sum.Requests), 100*float64(v.Recoveries)/float64(sum.Requests), 100*float64(sum.Client.Recoveries)/float64(sum.Requests),
				100*(sum.Bill.Cost/sum.Original.Cost-1), 100*((sum.Bill.Cost+o.Recovery)/sum.Original.Cost-1), 100*((sum.Bill.Cost+o.Recovery)/(sum.Itself.Cost+sum.Client.Recovery)-1), float64(sum.Bill.Busts)/float64(max(1,sum.Itself.Busts)), o.Unrepeated.Of, o.Edits.Of, o.Typed.Of, o.Tasks.Of)
		}
	}
}
