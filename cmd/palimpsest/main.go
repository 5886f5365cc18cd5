// Command palimpsest is the whole product: proxy, dashboard and their tools.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // people's time zones, where the system has none

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "palimpsest:", err)
		os.Exit(1)
	}
}

// newCommand returns the program's commands.
func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "palimpsest",
		Short:         "A proxy for LLM APIs in which no session ends at a full context window",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	var file string
	root.PersistentFlags().StringVar(&file, "config", "", "YAML file with settings; the environment wins")
	load := func() (Config, error) { return LoadConfig(file, os.LookupEnv) }
	root.AddCommand(serveCommand(load), checkCommand(load), migrateCommand(load), replayCommand(), verifyCommand(), userCommand(load), workspaceCommand(load), keyCommand(load), vaultCommand(load), demoCommand(load), backupCommand(load), restoreCommand(load))
	return root
}
