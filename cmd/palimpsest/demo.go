package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"palimpsest/cmd/palimpsest/demo"
	"palimpsest/cmd/palimpsest/logs"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/cmd/palimpsest/setup"
	"palimpsest/migrations"
	"palimpsest/migrations/localdb"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/tokens"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
)

const (
	demoDir  = "demo"      // below the data directory
	demoFile = "demo.json" // state kept between starts

	// The provider double listens on the first free port of these, because provider keys keep its address.
	demoPort  = 8090
	demoPorts = 10

	demoSeed = 20_26
)

func demoCommand(load func() (settings.Config, error)) *cobra.Command {
	days := demo.Days
	command := &cobra.Command{
		Use: "demo", Short: "Run the product with months of a made-up team's work, to look around in; no model is asked", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if days < demo.MinDays {
				return fmt.Errorf("--days: %d is out of range; allowed is %d and more", days, demo.MinDays)
			}
			config, err := load()
			if err != nil {
				return err
			}
			return runDemo(command.Context(), demoConfig(config), days, command.OutOrStdout())
		},
	}
	command.Flags().IntVar(&days, "days", days, fmt.Sprintf("how many days of work the first start makes up, from %d", demo.MinDays))
	command.AddCommand(&cobra.Command{
		Use: "clean", Short: "Remove the demo's data; the next start makes it again", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := load()
			if err != nil {
				return err
			}
			return demoPlace{dir: demoConfig(config).Storage.DataDir}.remove(command.Context())
		},
	})
	return command
}

// demoConfig returns the settings of an installation's demo. It listens on the same address, and shares
// nothing else with the installation.
func demoConfig(of settings.Config) settings.Config {
	config := settings.DefaultConfig()
	config.Serving.Addr, config.Serving.AdminAddr, config.Serving.PublicURL, config.Serving.LogFormat = of.Serving.Addr, of.Serving.AdminAddr, of.Serving.PublicURL, of.Serving.LogFormat
	config.Storage.DataDir = filepath.Join(of.Storage.DataDir, demoDir)
	if config.Demos.PublicDemo = of.Demos.PublicDemo; config.Demos.PublicDemo != "" {
		config.Serving.PublicURL = config.Demos.PublicDemo
	}
	config.Serving.TrustedProxies = of.Serving.TrustedProxies
	config.Serving.AllowPrivateUpstreams = true // the provider double is on this machine
	config.Accounts.SignUp.Open = identity.OpenToInvited
	config.Serving.DrainTimeout, config.Serving.DrainDelay = 5*time.Second, 0
	return config
}

// runDemo runs the demo, and creates it first if it does not exist.
func runDemo(ctx context.Context, config settings.Config, days int, out io.Writer) (err error) {
	// Reserve the address first: it may be taken, which should fail before a minute's work, and the
	// provider double must not use it.
	held, err := listen(ctx, "PALIMPSEST_ADDR", config.Serving.Addr)
	if err != nil {
		return err
	}
	defer func() { _ = held.Close() }() // a second Close where the demo runs
	place := demoPlace{dir: config.Storage.DataDir}
	state, err := place.open(ctx)
	if err != nil {
		return err
	}
	owner, stop, err := place.startDatabase(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	config.Storage.DatabaseURL = owner
	counter, err := tokens.NewCounter()
	if err != nil {
		return err
	}
	clock := &demo.Clock{}
	provider := demo.NewProvider(clock, counter.Count)
	address, stopProvider, err := serveProvider(ctx, provider, state.Provider)
	if err != nil {
		return err
	}
	defer stopProvider()
	if state.Made == nil {
		fmt.Fprintf(out, "\nMaking up %d days of a team's work. This takes about half a minute, once.\n", days)
		began := time.Now()
		made, err := fillDemo(ctx, config, demo.Config{
			Provider: provider, ProviderURL: "http://" + address, Clock: clock, Until: began, Days: days, Seed: demoSeed,
		})
		if err != nil {
			return err
		}
		state = demoState{Provider: address, Made: &made}
		if err := place.save(state); err != nil {
			return err
		}
		fmt.Fprintf(out, "%d sessions and %d single calls, %d requests in all, in %s.\n", made.Sessions, made.Single, made.Exchanges, time.Since(began).Round(time.Second))
	}
	provider.Withdraw()
	config.Demos.Demo = fmt.Sprintf("This is a demo: everything in it was made up, and no model is asked. Log in as %s with the password “%s”.", state.Made.Email, demo.Password)
	if config.Demos.PublicDemo != "" {
		config.Demos.Demo, config.Demos.Visited = "This is a demo to look at: everything in it was made up, and nothing can be changed.", state.Made.Email
	}
	if err := held.Close(); err != nil {
		return fmt.Errorf("release the demo's address: %w", err)
	}
	return runProgram(ctx, config, func(p *program) {
		if config.Demos.Visited != "" {
			fmt.Fprintf(out, "\nThe demo runs at %s\nAnyone may look at it without a login, and no one can change anything.\n\n", p.Reachable())
			return
		}
		fmt.Fprintf(out, "\nThe demo runs at %s\nLog in as %s with the password: %s\nMails that it would send: %s\n\nTo send a request of your own, which a double of the providers answers:\n"+
			"  export PALIMPSEST_KEY=%s\nmake demo-clean removes everything.\n\n", p.Reachable(), state.Made.Email, demo.Password, p.MailsAt(), state.Made.Key)
	})
}

// fillDemo fills the demo's database through a temporary program.
func fillDemo(ctx context.Context, config settings.Config, filling demo.Config) (made demo.Made, err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // whole prompts become garbage with every request
	if _, err := migrations.Up(ctx, config.Storage.DatabaseURL); err != nil {
		return demo.Made{}, err
	}
	if filling.Database, err = demo.OpenDatabaseClock(ctx, config.Storage.DatabaseURL); err != nil {
		return demo.Made{}, err
	}
	defer func() {
		if closing := filling.Database.Close(context.WithoutCancel(ctx)); err == nil {
			err = closing
		}
	}()
	config.Serving.Addr, config.Serving.AdminAddr, config.Serving.PublicURL, config.Serving.Role = "127.0.0.1:0", "", "", settings.RoleAPI // nothing answers at the public URL yet
	config.Accounts.SignUp.Open = identity.OpenToAll
	log := logs.NewWarnings(os.Stderr)
	filling.Clock.Set(filling.Until.Add(-time.Duration(filling.Days+1) * 24 * time.Hour))
	program, err := newProgramAt(ctx, config, log, filling.Clock.Now)
	if err != nil {
		return demo.Made{}, err
	}
	defer program.stop(context.WithoutCancel(ctx))
	seams := &program.sites[0].seams
	invitations := identity.NewInvitations(seams.people, seams.db.Invitations, program.Reachable())
	filling.URL = program.Reachable()
	filling.Join = func(ctx context.Context, link, password string) error {
		_, _, err := invitations.SignUp(ctx, filepath.Base(link), password, "", "command line")
		return err
	}
	filling.Verify = func(ctx context.Context, email string) (workspace tenants.WorkspaceID, err error) {
		user, _, err := seams.db.Accounts.UserByEmail(ctx, email)
		if err != nil {
			return workspace, err
		}
		memberships, err := seams.db.Workspaces.Memberships(ctx, user.ID)
		if err == nil && len(memberships) > 0 {
			workspace = memberships[0].Workspace.ID
		}
		return workspace, errors.Join(err, seams.db.Accounts.VerifyUser(ctx, user.ID))
	}
	filling.Record = func(ctx context.Context, workspace tenants.WorkspaceID, exchanges []tenants.Exchange) error {
		return seams.db.Exchanges.RecordExchanges(ctx, workspace, exchanges)
	}
	filling.Pass = func(ctx context.Context, work string) error { return seams.work.Pass(ctx, jobs.Kind(work)) }
	filling.Reread, filling.Recorded = seams.writer.Resolver.Missed, seams.recorded.wait
	return demo.Fill(ctx, filling)
}

// serveProvider serves the provider double on this machine, at an optional address. stop ends it.
func serveProvider(ctx context.Context, provider http.Handler, address string) (at string, stop func(), err error) {
	addresses := []string{address}
	if address == "" {
		addresses = nil
		for port := range demoPorts {
			addresses = append(addresses, fmt.Sprintf("127.0.0.1:%d", demoPort+port))
		}
	}
	for _, address := range addresses {
		var config net.ListenConfig
		listener, listenErr := config.Listen(ctx, "tcp", address)
		if err = listenErr; err != nil {
			continue
		}
		server := &http.Server{Handler: provider, ReadHeaderTimeout: headerTimeout}
		done := make(chan struct{})
		go func() { // ends with the server
			defer close(done)
			_ = server.Serve(listener)
		}()
		return address, func() { _ = server.Close(); <-done }, nil
	}
	return "", nil, fmt.Errorf("listen for the demo's provider: %w; end what listens there, or make the demo again with: palimpsest demo clean", err)
}

// demoState is kept from one start of the demo to the next.
type demoState struct {
	Provider string     `json:"provider"` // address of the double, which provider keys store
	Made     *demo.Made `json:"made"`     // nil if unfinished
}

// demoPlace is the directory of a demo.
type demoPlace struct{ dir string }

// open returns the saved state of the demo in the directory. It removes the remains of an unfinished start.
func (p demoPlace) open(ctx context.Context) (demoState, error) {
	var state demoState
	text, err := os.ReadFile(filepath.Join(p.dir, demoFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if entries, err := os.ReadDir(p.dir); err == nil && len(entries) > 0 {
			return state, fmt.Errorf("%s holds something that is not a demo; name another directory in PALIMPSEST_DATA_DIR", p.dir)
		}
	case err != nil:
		return state, fmt.Errorf("read the demo's state: %w", err)
	default:
		if err := json.Unmarshal(text, &state); err == nil && state.Made != nil {
			return state, nil
		}
		if err := p.remove(ctx); err != nil {
			return state, err
		}
	}
	if err := os.MkdirAll(p.dir, 0o755); err != nil { //nolint:gosec // the database's own user passes through
		return state, fmt.Errorf("create the demo's directory: %w", err)
	}
	return demoState{}, p.save(demoState{})
}

func (p demoPlace) save(state demoState) error {
	text, err := json.MarshalIndent(state, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(p.dir, demoFile), text, 0o600) // private because it holds an API key
	}
	if err != nil {
		return fmt.Errorf("write the demo's state: %w", err)
	}
	return nil
}

// remove removes a demo with all of its files, unless it is running.
func (p demoPlace) remove(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(p.dir, demoFile)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := localdb.Remove(ctx, filepath.Join(p.dir, "postgres")); err != nil {
		return err
	}
	if err := os.RemoveAll(p.dir); err != nil {
		return fmt.Errorf("remove the demo: %w", err)
	}
	return nil
}

// startDatabase starts the demo's own database and returns its owner's URL.
func (p demoPlace) startDatabase(ctx context.Context) (owner string, stop func() error, err error) {
	cluster, err := localdb.Start(ctx, localdb.Config{Dir: filepath.Join(p.dir, "postgres"), Path: os.Getenv("PATH")})
	if err != nil {
		return "", nil, fmt.Errorf("the demo's database: %w", err)
	}
	if err := cluster.CreateDatabase(ctx, setup.DatabaseName); err != nil {
		return "", nil, errors.Join(fmt.Errorf("the demo's database: %w", err), cluster.Stop())
	}
	return cluster.DSN(setup.DatabaseName), cluster.Stop, nil
}
