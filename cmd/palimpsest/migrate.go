package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/cmd/palimpsest/setup"
	"palimpsest/migrations"
)

func migrateCommand(load func() (settings.Config, error)) *cobra.Command {
	command := &cobra.Command{Use: "migrate", Short: "Change or show the database schema"}
	for _, step := range []struct {
		use, short string
		run        func(ctx context.Context, w io.Writer, url string) error
	}{
		{"up", "Apply every migration that is missing", migrateUp},
		{"down", "Take the newest migration back, with everything its tables hold", migrateDown},
		{"status", "List the migrations", migrateStatus},
	} {
		command.AddCommand(&cobra.Command{
			Use: step.use, Short: step.short, Args: cobra.NoArgs,
			RunE: func(command *cobra.Command, _ []string) error {
				config, err := load()
				if err != nil {
					return err
				}
				databases := setup.DatabaseOf(config)
				defer databases.Close()
				url, err := databases.OwnerURL(command.Context())
				if err != nil {
					return err
				}
				return step.run(command.Context(), command.OutOrStdout(), url)
			},
		})
	}
	return command
}

func migrateUp(ctx context.Context, w io.Writer, url string) error {
	applied, err := migrations.Up(ctx, url)
	fmt.Fprintf(w, "%d migrations applied\n", applied)
	return err
}

func migrateDown(ctx context.Context, w io.Writer, url string) error {
	was, err := migrations.Down(ctx, url)
	if err != nil {
		return err
	}
	if !was {
		return errors.New("there is no migration to take back")
	}
	fmt.Fprintln(w, "1 migration taken back")
	return nil
}

func migrateStatus(ctx context.Context, w io.Writer, url string) error {
	all, err := migrations.Status(ctx, url)
	if err != nil {
		return err
	}
	for _, migration := range all {
		state := "missing"
		if !migration.AppliedAt.IsZero() {
			state = "applied " + migration.AppliedAt.Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%05d  %-30s  %s\n", migration.Version, migration.File, state)
	}
	return nil
}
