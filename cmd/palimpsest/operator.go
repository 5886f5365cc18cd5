package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"palimpsest/api"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/blob"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/tenantsdb"
)

const (
	checkTimeout = 3 * time.Second // for all parts together
	probeName    = "palimpsest-health-probe"
)

// signUps has people say who may sign up, as the settings have it.
func (p *program) signUps(people *identity.Service) {
	set := p.config.SignUp
	people.SetSignUps(identity.SignUps{
		Open: set.Open, Allowed: set.Domains, RefuseDisposable: set.RefuseDisposable, Blocked: set.Blocked,
		PerPlace: true, Quiet: p.config.quietSignUps(),
	})
}

// bounded gives the proxy its limits on the way in.
func (p *program) bounded(proxy *api.Server) *api.Server {
	proxy.Concurrency = api.NewConcurrency(p.config.WorkspaceConcurrency)
	proxy.Bytes = api.NewBytes(p.config.Bounds.WorkspaceMegabytes<<20, p.config.Bounds.Megabytes<<20)
	proxy.RequireVerified, proxy.Contact = p.config.RequireVerifiedEmail, p.config.OperatorContact
	return proxy
}

// checks returns what looks at the parts of the installation for its operator.
func (p *program) checks(db *tenantsdb.DB) func(context.Context) []tenants.Check {
	return func(ctx context.Context) []tenants.Check {
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		defer cancel()
		return []tenants.Check{
			check("Database", "answers", db.Ping(ctx)), checkJobs(ctx, db), p.checkBlobs(ctx), p.checkRedis(ctx),
			{Name: "Version", OK: true, Text: version()},
		}
	}
}

// check is a part that answers, or not. The cause may hold addresses: it is not shown.
func check(name, answers string, err error) tenants.Check {
	if err != nil {
		return tenants.Check{Name: name, Text: "does not answer"}
	}
	return tenants.Check{Name: name, OK: true, Text: answers}
}

func checkJobs(ctx context.Context, db *tenantsdb.DB) tenants.Check {
	states, err := jobsdb.States(ctx, db.WorkPool())
	if err != nil {
		return check("Jobs", "", err)
	}
	if len(states) == 0 {
		return tenants.Check{Name: "Jobs", OK: true, Text: "none wait"}
	}
	texts := make([]string, 0, len(states))
	for _, state := range states {
		texts = append(texts, fmt.Sprintf("%d %s", state.Jobs, state.State))
	}
	return tenants.Check{Name: "Jobs", OK: true, Text: strings.Join(texts, ", ")}
}

func (p *program) checkBlobs(ctx context.Context) tenants.Check {
	if p.config.BlobURL == "" {
		return tenants.Check{Name: "Blob store", OK: true, Text: "the database"}
	}
	bucket, err := blob.Open(ctx, p.config.BlobURL)
	if err == nil {
		if _, err = bucket.Get(ctx, probeName); errors.Is(err, archive.ErrNotFound) {
			err = nil // it answers
		}
	}
	return check("Blob store", "answers", err)
}

func (p *program) checkRedis(ctx context.Context) tenants.Check {
	if p.config.RedisURL == "" {
		return tenants.Check{Name: "Redis", OK: true, Text: "none; each process counts by itself"}
	}
	options, err := redis.ParseURL(p.config.RedisURL)
	if err != nil {
		return check("Redis", "", err)
	}
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	return check("Redis", "answers", client.Ping(ctx).Err())
}

// version returns what the program was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return info.Main.Version
}

// operatorCommand makes somebody an operator, for who has the command line.
func operatorCommand(load func() (Config, error)) *cobra.Command {
	return &cobra.Command{
		Use: "operator EMAIL", Short: "Make a user an operator of the installation", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			return withTools(load, func(ctx context.Context, command *cobra.Command, tools tools) error {
				user, err := tools.user(ctx, arguments[0])
				if err != nil {
					return err
				}
				appointed, err := tenantsdb.AppointOperator(ctx, tools.owner, user.ID)
				if err != nil {
					return err
				}
				if !appointed {
					fmt.Fprintf(command.OutOrStdout(), "%s is an operator already\n", user.Email)
					return nil
				}
				fmt.Fprintf(command.OutOrStdout(), "%s is an operator now\n", user.Email)
				return nil
			})(command, arguments)
		},
	}
}
