package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"palimpsest/tenants/tenantsdb"
)

// operatorCommand makes a user an operator. It needs access to the command line.
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
