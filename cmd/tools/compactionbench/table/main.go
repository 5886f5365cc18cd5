// Command table compares ways to compact sessions and prints the tables. It needs
// no provider, no network and no database.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"palimpsest/cmd/tools/compactionbench"
	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/reporttest"
)

// options are the command's flags.
type options struct {
	json  bool
	write string
	quick bool
	data  string
	only  string
	vast  bool
	kept  bool
	curve bool
	set   []string
}

func main() {
	var wanted options
	flag.BoolVar(&wanted.json, "json", false, "print JSON, not tables")
	flag.StringVar(&wanted.write, "write", "", "page to write the tables of a whole run into")
	flag.BoolVar(&wanted.quick, "quick", false, "fewer and shorter sessions")
	flag.StringVar(&wanted.data, "data", "../shared/data", "directory with transcripts/*.anthropic.json, where there is one")
	flag.StringVar(&wanted.only, "only", "", "only generated sessions whose name holds this")
	flag.BoolVar(&wanted.vast, "vast", false, "only real sessions in a window of a million")
	flag.BoolVar(&wanted.kept, "kept", false, "only what prompts behind compactions still say of real sessions")
	flag.BoolVar(&wanted.curve, "curve", false, "only ways to compact real sessions by cost and by what they forget")
	flag.Func("set", "one setting of the pipeline, such as ipc.compressTo=0.35; may be repeated", func(setting string) error {
		wanted.set = append(wanted.set, setting)
		return nil
	})
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, wanted)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, wanted options) error {
	bench, err := compactionbench.New()
	if err != nil {
		return err
	}
	if bench.Pipeline, err = configured(bench.Pipeline.Modules, wanted.set); err != nil {
		return err
	}
	suite := compactionbench.Suite{
		Data: wanted.data, Quick: wanted.quick, Only: wanted.only, Note: func(note string) { fmt.Fprintln(os.Stderr, "comparing:", note) },
	}
	if wanted.kept {
		found, err := bench.Forgotten(ctx, suite)
		if err != nil || len(found) == 0 {
			return err
		}
		return report(ctx, wanted, "bench-compaction ARGS=-kept", found.Markdown())
	}
	if wanted.curve {
		found, err := bench.Ways(ctx, suite)
		if err != nil || len(found) == 0 {
			return err
		}
		return report(ctx, wanted, "bench-compaction ARGS=-curve", found.Markdown())
	}
	if wanted.only == "" && !wanted.json {
		if err := vast(ctx, bench, suite, wanted); err != nil || wanted.vast {
			return err
		}
	}
	result, err := bench.Run(ctx, suite)
	if err != nil {
		return err
	}
	if wanted.json {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(result)
	}
	return report(ctx, wanted, "bench-compaction", result.Markdown())
}

// vast compares in a window of a million tokens.
func vast(ctx context.Context, bench *compactionbench.Bench, suite compactionbench.Suite, wanted options) error {
	found, err := bench.Vast(ctx, suite)
	if err != nil || len(found.Rows) == 0 {
		return err
	}
	return report(ctx, wanted, "bench-compaction ARGS=-vast", found.Markdown())
}

// report prints tables, and writes those of a whole run into the page at a mark.
func report(ctx context.Context, wanted options, mark, tables string) error {
	text := fmt.Sprintf("%s, commit %s, %s; as many sessions at a time as there are cores.\n\n%s",
		time.Now().UTC().Format(time.DateOnly), commit(ctx), reporttest.Machine(), tables)
	fmt.Print(text) //nolint:forbidigo // the command's output
	if wanted.write == "" || wanted.only != "" || wanted.quick || len(wanted.set) > 0 {
		return nil
	}
	return reporttest.Write(wanted.write, mark, text)
}

// configured returns the default settings with changes for some modules.
func configured(names, settings []string) (pipeline.Config, error) {
	layers := []pipeline.Layer{{Source: pipeline.FromDefault, Modules: strings.Join(names, ",")}}
	for _, setting := range settings {
		name, value, isSet := strings.Cut(setting, "=")
		module, field, nested := strings.Cut(name, ".")
		if !isSet || !nested {
			return pipeline.Config{}, fmt.Errorf("-set %s: must be module.setting=value, such as ipc.compressTo=0.35", setting)
		}
		layers = append(layers, pipeline.Layer{Source: pipeline.FromHeader, YAML: module + ":\n  " + field + ": " + value + "\n"})
	}
	config, _, err := modules.Catalog().Resolve(layers...)
	if err != nil {
		return pipeline.Config{}, fmt.Errorf("pipeline config: %w", err)
	}
	return config, nil
}

// commit names the running version.
func commit(ctx context.Context) string {
	name, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(name))
}
