// Package offline has the commands that need no server and no database.
package offline

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/replay"
)

// replayOptions are the flags of the replay command.
type replayOptions struct {
	format string
	config string
	set    []string
	window int
	json   bool
	out    string
}

func replayCommand() *cobra.Command {
	var options replayOptions
	command := &cobra.Command{
		Use:   "replay FILE…",
		Short: "Run recorded request bodies through the pipeline, offline, and report what would be sent",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, files []string) error {
			for _, file := range files {
				if err := replayFile(command.Context(), command.OutOrStdout(), file, options); err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
			}
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.format, "format", "", "anthropic, openai-chat, openai-responses or gemini; default: by the body")
	flags.StringVar(&options.config, "config", "", "pipeline config, YAML")
	flags.StringArrayVar(&options.set, "set", nil, "one setting, such as ipc.targetUtilization=0.5; may be repeated")
	flags.IntVar(&options.window, "window", 0, "context window in tokens; default: the model's")
	flags.BoolVar(&options.json, "json", false, "report as JSON, one line for each exchange and one for the sum")
	flags.StringVar(&options.out, "out", "", "directory to write each sent body to")
	return command
}

func replayFile(ctx context.Context, w io.Writer, file string, options replayOptions) error {
	body, err := os.ReadFile(file) //nolint:gosec // the caller names it
	if err != nil {
		return err
	}
	config, err := replayConfig(options)
	if err != nil {
		return err
	}
	format := conversation.Format(options.format)
	if format == "" {
		format = replay.Detect(body)
	}
	validate, err := newValidator(options.window, body)
	if err != nil {
		return err
	}
	run, err := replay.New(replay.Config{Format: format, Pipeline: config, Window: options.window, Validate: validate})
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	report := reporter{w: w, json: options.json, file: filepath.Base(file)}
	report.head()
	sum, err := run.Run(ctx, body, func(step replay.Step) error {
		if err := report.step(step); err != nil || options.out == "" {
			return err
		}
		return writeBody(options.out, report.file, step)
	})
	if err != nil {
		return err
	}
	if err := report.sum(sum); err != nil {
		return err
	}
	if sum.Invalid > 0 {
		return fmt.Errorf("%d sent bodies break the provider's rules", sum.Invalid)
	}
	return nil
}

// replayConfig returns the pipeline of a replay: the defaults, overridden by the file, overridden by single
// settings.
func replayConfig(options replayOptions) (pipeline.Config, error) {
	layers := []pipeline.Layer{}
	if options.config != "" {
		content, err := os.ReadFile(options.config)
		if err != nil {
			return pipeline.Config{}, fmt.Errorf("read pipeline config: %w", err)
		}
		layers = append(layers, pipeline.Layer{Source: pipeline.FromWorkspace, YAML: string(content)})
	}
	for _, setting := range options.set {
		name, value, ok := strings.Cut(setting, "=")
		module, field, nested := strings.Cut(name, ".")
		if !ok || !nested {
			return pipeline.Config{}, fmt.Errorf("--set %s: must be module.setting=value, such as ipc.targetUtilization=0.5", setting)
		}
		layers = append(layers, pipeline.Layer{Source: pipeline.FromHeader, YAML: module + ":\n  " + field + ": " + value + "\n"})
	}
	config, _, err := modules.Catalog().Resolve(layers...)
	if err != nil {
		return pipeline.Config{}, fmt.Errorf("pipeline config: %w", err)
	}
	return config, nil
}

func writeBody(directory, file string, step replay.Step) error {
	if err := os.MkdirAll(directory, 0o750); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	name := fmt.Sprintf("%s.%04d.json", strings.TrimSuffix(file, ".json"), step.Number)
	if err := os.WriteFile(filepath.Join(directory, name), step.Sent.Body, 0o600); err != nil {
		return fmt.Errorf("write body: %w", err)
	}
	return nil
}

// reporter prints a replay.
type reporter struct {
	w    io.Writer
	json bool
	file string
}

func (r reporter) head() {
	if !r.json {
		fmt.Fprintf(r.w, "%s\n%5s %9s %9s %-11s %-21s %7s %10s %10s %s\n", r.file,
			"#", "before", "after", "compression", "turns L0/L1/L2/L3", "shared", "cost $", "no proxy $", "valid")
	}
}

func (r reporter) step(step replay.Step) error {
	if r.json {
		return r.encode(step)
	}
	valid := "yes"
	if step.Invalid != "" {
		valid = step.Invalid
	}
	levels := fmt.Sprintf("%d/%d/%d/%d", step.Levels[0], step.Levels[1], step.Levels[2], step.Levels[3])
	fmt.Fprintf(r.w, "%5d %9d %9d %-11s %-21s %6.1f%% %10.4f %10.4f %s\n", step.Number, step.Before, step.After,
		step.Compression, levels, 100*step.Shared, dollars(step.CostMicroUSD), dollars(step.DirectMicroUSD), valid)
	for i := range step.Certificate {
		if kept := &step.Certificate[i]; kept.All > 0 {
			fmt.Fprintf(r.w, "      kept %s\n", kept)
		}
	}
	return nil
}

func (r reporter) sum(sum replay.Sum) error {
	if r.json {
		return r.encode(sum)
	}
	fmt.Fprintf(r.w, "%d exchanges, %d epochs, %d cache busts, %d invalid; window %d; cost $%.4f against $%.4f without the proxy (%+.1f %%)\n\n",
		sum.Exchanges, sum.Epochs, sum.Busts, sum.Invalid, sum.Window,
		dollars(sum.CostMicroUSD), dollars(sum.DirectMicroUSD), sum.Difference())
	return nil
}

func (r reporter) encode(line any) error {
	if err := json.NewEncoder(r.w).Encode(line); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func dollars(micro int64) float64 { return float64(micro) / 1e6 }
