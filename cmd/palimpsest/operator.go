package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"palimpsest/api"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/tenantsdb"
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

// operatorCommand makes someone an operator, for who has the command line.
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
