// Command palimpsest is the whole product: proxy, dashboard and their tools.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	_ "time/tzdata" // time zones of users, if the system has no database of them

	"github.com/spf13/cobra"

	"palimpsest/cmd/palimpsest/inspection"
	"palimpsest/cmd/palimpsest/offline"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/cmd/palimpsest/terminal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if ended, is := errors.AsType[*exec.ExitError](err); is && ended.ExitCode() > 0 {
		os.Exit(ended.ExitCode()) // of a client started by run, which has printed its own error
	}
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
	var file, database string
	root.PersistentFlags().StringVar(&file, "config", "", "YAML file with settings; the environment wins")
	root.PersistentFlags().StringVar(&database, "database", "", "URL of the PostgreSQL database, in place of DATABASE_URL; or host of the public URL in DATABASE_URLS whose database is meant")
	load := func() (settings.Config, error) {
		config, err := settings.LoadConfig(file, os.LookupEnv)
		if err != nil {
			return settings.Config{}, err
		}
		return config.Choose(database)
	}
	root.AddCommand(serveCommand(load), inspection.Command(load), demoCommand(load), versionCommand())
	root.AddCommand(offline.Commands(version())...)
	root.AddCommand(terminal.ClientCommands()...)
	root.AddCommand(terminal.New(version()).Commands()...)
	one := settings.LoadOne(load)
	root.AddCommand(migrateCommand(one), userCommand(one), workspaceCommand(one), keyCommand(one), vaultCommand(one), backupCommand(one), restoreCommand(one))
	return root
}
