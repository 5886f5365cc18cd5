package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/cmd/palimpsest/setup"
	"palimpsest/cmd/palimpsest/snapshot"
	"palimpsest/migrations"
	"palimpsest/pipeline/archive/blob"
	"palimpsest/tenants/vault"
)

// progressEvery is the time between two lines about the progress of a backup or a restore.
const progressEvery = 5 * time.Second

func backupCommand(load func() (settings.Config, error)) *cobra.Command {
	var withKey, leaveObjects bool
	command := &cobra.Command{
		Use:   "backup DIRECTORY",
		Short: "Write everything of the installation into a new directory, beside a product that runs",
		Long: "Backup writes the database as it is at one moment, then the bucket's objects, into a new directory whose name ends with .partial until all of it is on disk. " +
			"The master key is not part of it: keep that elsewhere, for without it nobody can read what is sealed. What processes have not recorded yet lies in their data directories and is not part of it either.",
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			return onInstallation(load, func(of backups) error {
				return of.make(command.Context(), command.OutOrStdout(), command.ErrOrStderr(), arguments[0], withKey, leaveObjects)
			})
		},
	}
	command.Flags().BoolVar(&withKey, "with-secret-key", false, "put the master key into the backup: anyone who gets the backup can then read everything")
	command.Flags().BoolVar(&leaveObjects, "without-objects", false, "leave the bucket's objects where they are; a restore then needs this bucket or a copy of it")
	return command
}

func restoreCommand(load func() (settings.Config, error)) *cobra.Command {
	var onlyCheck bool
	var trusted trust
	command := &cobra.Command{
		Use:   "restore DIRECTORY",
		Short: "Put a backup into an empty database and its bucket",
		Long: "Restore reads all of a backup first, and changes nothing if something of it is missing, damaged or changed, if the database is not empty, or if the master key is another one. " +
			"Start the product once it is done. A restore that was interrupted is simply done again.",
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			ctx, w := command.Context(), command.OutOrStdout()
			progress := newProgress(command.ErrOrStderr())
			return onInstallation(load, func(of backups) error {
				backup, err := of.open(arguments[0], trusted)
				if err == nil {
					err = backup.manifest.Check(ctx, backup.dir, progress.tell)
				}
				if err != nil {
					return err
				}
				describe(w, "The backup is whole and unchanged:", backup.manifest)
				if onlyCheck {
					return nil
				}
				return of.restore(ctx, w, progress, backup)
			})
		},
	}
	command.Flags().BoolVar(&onlyCheck, "check", false, "only check that the backup is whole and unchanged; needs the master key")
	command.Flags().BoolVar(&trusted.key, "key-in-backup", false, "take the master key from the backup; only if you know that the backup was not changed: anyone who has it has this key")
	command.Flags().BoolVar(&trusted.manifest, "unauthenticated", false, "take a backup of an older version, which any change could have been made to; only if you know that nobody has")
	return command
}

// onInstallation runs a command's work with the installation's settings.
func onInstallation(load func() (settings.Config, error), work func(backups) error) error {
	config, err := load()
	if err != nil {
		return err
	}
	databases := setup.DatabaseOf(config)
	defer databases.Close()
	return work(backups{config: config, databases: databases})
}

// backups writes an installation into a directory, and reads it from there.
type backups struct {
	config    settings.Config
	databases *setup.Database
}

// errNothing is returned if there is no installation.
var errNothing = errors.New("there is nothing to back up: neither DATABASE_URL is set, nor is there an embedded database below PALIMPSEST_DATA_DIR")

// manifestKey is the purpose of the keys that authenticate backups.
const manifestKey = "backup manifests"

// trust holds what an operator vouches for.
type trust struct {
	key      bool // the master key in a backup
	manifest bool // a backup that no key authenticates
}

// opened is a backup with a trusted manifest.
type opened struct {
	dir      string
	manifest snapshot.Manifest
	secret   string // the master key, if it comes from the backup; else ""
}

// make writes a backup.
func (b backups) make(ctx context.Context, w, stderr io.Writer, dir string, withKey, leaveObjects bool) error {
	if _, err := os.Stat(filepath.Join(b.config.Storage.DataDir, "postgres")); b.config.Storage.DatabaseURL == "" && err != nil {
		return errNothing
	}
	safe, secret, err := existingVault(b.config.Storage.DataDir, b.config.Storage.SecretKey)
	if err != nil {
		return err
	}
	source := snapshot.Source{LeaveObjects: leaveObjects, ManifestKey: safe.Derive(manifestKey)}
	if withKey {
		source.SecretKey = secret
	}
	if source.OwnerURL, err = b.databases.OwnerURL(ctx); err != nil {
		return err
	}
	if b.config.Storage.BlobURL != "" {
		if source.Bucket, err = blob.Open(b.config.Storage.BlobURL); err != nil {
			return fmt.Errorf("PALIMPSEST_BLOB_URL: %w", err)
		}
	}
	manifest, err := snapshot.Make(ctx, source, dir, newProgress(stderr).tell)
	if err != nil {
		return err
	}
	describe(w, "The backup is in "+dir+":", manifest)
	switch {
	case withKey:
		fmt.Fprintln(w, "It holds the master key: anyone who gets it can read everything.")
	default:
		fmt.Fprintln(w, "It does not hold the master key. Keep a copy of that elsewhere: without it, nobody can read what is sealed.")
	}
	return nil
}

// describe prints the contents of a backup.
func describe(w io.Writer, first string, manifest snapshot.Manifest) {
	counts := manifest.Counts
	fmt.Fprintf(w, "%s the database of %s, %d workspaces, %d sessions, %d requests, %s\n", first,
		manifest.MadeAt.Format(time.RFC3339), counts.Workspaces, counts.Sessions, counts.Exchanges, size(manifest.Database.Bytes))
	switch manifest.Objects.Where {
	case snapshot.ObjectsHere:
		fmt.Fprintf(w, "and %d objects of the bucket, %s.\n", manifest.Objects.Count, size(manifest.Objects.Bytes))
	case snapshot.ObjectsElsewhere:
		fmt.Fprintln(w, "without the objects of the bucket, which a restore needs.")
	default:
		fmt.Fprintln(w, "and no bucket: the database holds every original.")
	}
}

// errNoKey is returned when nothing restored could be read.
var errNoKey = errors.New("there is no master key: set PALIMPSEST_SECRET_KEY to that of the installation, or put its secret.key into PALIMPSEST_DATA_DIR")

// errKeyInBackup explains how to use a backup's own key.
var errKeyInBackup = errors.New("the backup holds a key, but that shows nothing about who made the backup. If you know that nobody has changed the backup, pass --key-in-backup")

// existingVault opens the vault with the installation's master keys, and creates no key. It returns them in
// the setting's format.
func existingVault(dataDir, secret string) (*vault.Vault, string, error) {
	if secret == "" {
		content, err := os.ReadFile(filepath.Join(dataDir, "secret.key")) //nolint:gosec // the operator names the folder
		if errors.Is(err, os.ErrNotExist) {
			return nil, "", errNoKey
		}
		if err != nil {
			return nil, "", fmt.Errorf("read secret key: %w", err)
		}
		secret = strings.TrimSpace(string(content))
	}
	secrets, err := settings.DecodeSecrets(secret)
	if err != nil {
		return nil, "", err
	}
	safe, err := vault.New(secrets)
	return safe, secret, err
}

// open reads the manifest of a backup, once the master key or the operator vouches for it.
func (b backups) open(dir string, trusted trust) (opened, error) {
	backup := opened{dir: dir}
	safe, _, err := existingVault(b.config.Storage.DataDir, b.config.Storage.SecretKey)
	if errors.Is(err, errNoKey) {
		var kept string
		var readErr error
		switch kept, readErr = snapshot.Secret(dir); {
		case readErr != nil:
			return backup, readErr
		case kept != "" && trusted.key:
			backup.secret = kept
			safe, _, err = existingVault(b.config.Storage.DataDir, kept)
		case kept != "":
			err = fmt.Errorf("%w; %w", err, errKeyInBackup)
		}
	}
	if err != nil {
		return backup, err
	}
	backup.manifest, err = snapshot.Read(dir, safe.DeriveAll(manifestKey))
	if !errors.Is(err, snapshot.ErrUnauthenticated) || !trusted.manifest {
		return backup, err
	}
	if err := safe.OpensProof(backup.manifest.Proof); err != nil {
		return backup, fmt.Errorf("the master key is not that of the backup: set PALIMPSEST_SECRET_KEY to the one that was used when it was made: %w", err)
	}
	return backup, nil
}

// restore puts a backup into an empty database.
func (b backups) restore(ctx context.Context, w io.Writer, progress *progress, backup opened) error {
	newest, err := migrations.Newest()
	if err != nil {
		return err
	}
	if migration := backup.manifest.Migration; migration > newest {
		return fmt.Errorf("the backup has migration %d, and this program knows %d: use the version that made it, or a newer one", migration, newest)
	}
	var target snapshot.Target
	if b.config.Storage.BlobURL != "" {
		if target.Bucket, err = blob.Open(b.config.Storage.BlobURL); err != nil {
			return fmt.Errorf("PALIMPSEST_BLOB_URL: %w", err)
		}
	}
	if target.OwnerURL, err = b.databases.OwnerURL(ctx); err != nil {
		return err
	}
	if backup.secret != "" {
		if err := os.WriteFile(filepath.Join(b.config.Storage.DataDir, "secret.key"), []byte(backup.secret+"\n"), 0o600); err != nil {
			return fmt.Errorf("write secret key: %w", err)
		}
	}
	if err := backup.manifest.Restore(ctx, backup.dir, target, progress.tell); err != nil {
		return err
	}
	fmt.Fprintln(w, "Everything is restored. Start the product with the same settings: palimpsest serve")
	return nil
}

// progress prints the progress from time to time.
type progress struct {
	to   io.Writer
	mu   sync.Mutex
	last time.Time
}

func newProgress(to io.Writer) *progress { return &progress{to: to, last: time.Now()} }

func (p *progress) tell(part string, count, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.last) < progressEvery {
		return
	}
	p.last = time.Now()
	if count > 0 {
		fmt.Fprintf(p.to, "%s: %d, %s\n", part, count, size(bytes))
		return
	}
	fmt.Fprintf(p.to, "%s: %s\n", part, size(bytes))
}

// size formats bytes for people.
func size(bytes int64) string {
	const mega = 1 << 20
	if bytes < mega {
		return fmt.Sprintf("%d KB", (bytes+1023)>>10)
	}
	return fmt.Sprintf("%d MB", bytes/mega)
}
