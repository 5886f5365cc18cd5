package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
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
	signUpWindow = time.Hour       // in which sign-ups of one place are counted
	checkTimeout = 3 * time.Second // for all parts together
	probeName    = "palimpsest-health-probe"
)

// SignUp is the settings of who may sign up.
type SignUp struct {
	Open             identity.Openness // PALIMPSEST_SIGNUP
	Domains          []string          // PALIMPSEST_SIGNUP_DOMAINS
	RefuseDisposable bool              // PALIMPSEST_SIGNUP_DISPOSABLE
	Blocked          []string          // PALIMPSEST_SIGNUP_BLOCK_DOMAINS
}

// signUpSettings lists the settings of who may sign up and of limits on the way in.
func signUpSettings() []setting {
	domains := func(field func(*Config) *[]string) func(*Config, string) error {
		return func(config *Config, value string) error {
			parsed, err := identity.ParseDomains(value)
			*field(config) = parsed
			return err
		}
	}
	return []setting{
		{"PALIMPSEST_SIGNUP", func(c *Config, value string) error {
			switch c.SignUp.Open = identity.Openness(value); c.SignUp.Open {
			case identity.OpenToAll, identity.OpenToInvited, identity.OpenToDomains:
				return nil
			}
			return errors.New("must be open, invite or domains")
		}},
		{"PALIMPSEST_SIGNUP_DOMAINS", domains(func(c *Config) *[]string { return &c.SignUp.Domains })},
		{"PALIMPSEST_SIGNUP_BLOCK_DOMAINS", domains(func(c *Config) *[]string { return &c.SignUp.Blocked })},
		{"PALIMPSEST_SIGNUP_DISPOSABLE", func(c *Config, value string) error {
			if value != "allow" && value != "refuse" {
				return errors.New("must be allow or refuse")
			}
			c.SignUp.RefuseDisposable = value == "refuse"
			return nil
		}},
		{"PALIMPSEST_WORKSPACE_CONCURRENCY", func(c *Config, value string) error {
			limit, err := strconv.Atoi(value)
			if err != nil || limit < 1 {
				return errors.New("must be a whole number from 1")
			}
			c.WorkspaceConcurrency = limit
			return nil
		}},
		{"PALIMPSEST_OPERATOR_CONTACT", func(c *Config, value string) error { c.OperatorContact = value; return nil }},
	}
}

// validate names a setting that lacks another.
func (s SignUp) validate() error {
	if s.Open == identity.OpenToDomains && len(s.Domains) == 0 {
		return errors.New("PALIMPSEST_SIGNUP_DOMAINS: is empty, but PALIMPSEST_SIGNUP is domains; name domains such as example.com,example.org")
	}
	return nil
}

// signUps has people say who may sign up, as the settings have it.
func (p *program) signUps(people *identity.Service, throttle identity.Throttle) {
	set := p.config.SignUp
	people.SetSignUps(identity.SignUps{
		Open: set.Open, Allowed: set.Domains, RefuseDisposable: set.RefuseDisposable, Blocked: set.Blocked,
		PerPlace: throttle.Over(signUpWindow),
	})
}

// bounded gives the proxy its limits on the way in.
func (p *program) bounded(proxy *api.Server) *api.Server {
	proxy.Concurrency = api.NewConcurrency(p.config.WorkspaceConcurrency)
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
	states, err := jobsdb.States(ctx, db.Pool())
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
				user, _, err := tools.db.UserByEmail(ctx, strings.ToLower(arguments[0]))
				if err != nil {
					return fmt.Errorf("user %s: %w", arguments[0], err)
				}
				appointed, err := tools.db.AppointOperator(ctx, user.ID)
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
