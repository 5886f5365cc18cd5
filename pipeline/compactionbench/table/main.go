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

	"palimpsest/api/apibench"
	"palimpsest/pipeline"
	"palimpsest/pipeline/compactionbench"
)

// options are the command's flags.
type options struct {
	json  bool
	write string
	quick bool
	data  string
	only  string
	set   []string
}

func main() {
	var wanted options
	flag.BoolVar(&wanted.json, "json", false, "print JSON, not tables")
	flag.StringVar(&wanted.write, "write", "", "page to write the tables of a whole run into")
	flag.BoolVar(&wanted.quick, "quick", false, "fewer and shorter sessions")
	flag.StringVar(&wanted.data, "data", "../shared/data", "directory with transcripts/*.anthropic.json, where there is one")
	flag.StringVar(&wanted.only, "only", "", "only generated sessions whose name holds this")
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
	result, err := bench.Run(ctx, compactionbench.Suite{
		Data: wanted.data, Quick: wanted.quick, Only: wanted.only, Note: func(note string) { fmt.Fprintln(os.Stderr, "comparing:", note) },
	})
	if err != nil {
		return err
	}
	if wanted.json {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(result)
	}
	text := fmt.Sprintf("%s, commit %s, %s; as many sessions at a time as there are cores.\n\n%s",
		time.Now().UTC().Format(time.DateOnly), commit(ctx), apibench.Machine(), result.Markdown())
	fmt.Print(text) //nolint:forbidigo // the command's output
	if wanted.write == "" || wanted.only != "" || wanted.quick || len(wanted.set) > 0 {
		return nil
	}
	return apibench.Write(wanted.write, "bench-compaction", text)
}

// configured returns the default settings with some changed, for some modules.
func configured(modules, settings []string) (pipeline.Config, error) {
	layers := []pipeline.Layer{{Source: pipeline.FromDefault, Modules: strings.Join(modules, ",")}}
	for _, setting := range settings {
		name, value, isSet := strings.Cut(setting, "=")
		module, field, nested := strings.Cut(name, ".")
		if !isSet || !nested {
			return pipeline.Config{}, fmt.Errorf("-set %s: must be module.setting=value, such as ipc.compressTo=0.35", setting)
		}
		layers = append(layers, pipeline.Layer{Source: pipeline.FromHeader, YAML: module + ":\n  " + field + ": " + value + "\n"})
	}
	config, _, err := pipeline.Resolve(layers...)
	if err != nil {
		return pipeline.Config{}, fmt.Errorf("pipeline config: %w", err)
	}
	return config, nil
}

// commit names the version that runs.
func commit(ctx context.Context) string {
	name, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(name))
}
