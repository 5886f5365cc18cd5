package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"palimpsest/api/credentials"
	"palimpsest/api/upstream"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/cmd/palimpsest/setup"
	"palimpsest/cmd/palimpsest/terminal"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
)

// tools are the services for the commands of first steps.
type tools struct {
	db          *tenantsdb.DB
	people      *identity.Service
	credentials *credentials.Service
	vault       *vault.Vault
	owner       string // URL of the database with its owner's login
}

// withTools runs a command's work on the installation's database.
func withTools(load func() (settings.Config, error), work func(context.Context, *cobra.Command, tools) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, _ []string) error {
		config, err := load()
		if err != nil {
			return err
		}
		databases := setup.DatabaseOf(config)
		defer databases.Close()
		safe, err := config.OpenVault()
		if err != nil {
			return err
		}
		base := base{Inputs: databases.Inputs, vault: safe}
		if base.db, err = databases.OpenDatabase(command.Context(), safe); err != nil {
			return err
		}
		if base.redis, err = setup.OpenRedis(base.Inputs); err != nil {
			return err
		}
		people, keys, err := openAccess(base)
		if err != nil {
			return err
		}
		people.SetSignUps(identity.SignUps{}) // a user of the command line vouches for people
		provider := upstream.NewGuarded(base.Guard)
		defer provider.Close()
		ctx := tenants.WithActor(command.Context(), tenants.Actor{Name: "command line"})
		return work(ctx, command, tools{db: base.db, people: people, credentials: newCredentials(base, keys, provider), vault: safe, owner: databases.Owner})
	}
}

// user returns the user with an address.
func (t tools) user(ctx context.Context, email string) (tenants.User, error) {
	user, _, err := t.db.Accounts.UserByEmail(ctx, strings.ToLower(email))
	if errors.Is(err, tenants.ErrNotFound) {
		return user, fmt.Errorf("nobody here has the address %s", email)
	}
	return user, err
}

// accountFlags name an account.
type accountFlags struct{ email, workspace string }

func userCommand(load func() (settings.Config, error)) *cobra.Command {
	var flags accountFlags
	create := &cobra.Command{
		Use: "create", Short: "Create a user with a workspace; the password is read from standard input", Args: cobra.NoArgs,
		RunE: withTools(load, func(ctx context.Context, command *cobra.Command, tools tools) error {
			password, err := bufio.NewReader(command.InOrStdin()).ReadString('\n')
			if err != nil && password == "" {
				return errors.New("no password on standard input; try: echo 'a long password' | palimpsest user create …")
			}
			principal, _, err := tools.people.SignUp(ctx, flags.email, strings.TrimRight(password, "\r\n"), flags.workspace, "command line")
			if err != nil {
				return err
			}
			// The operator vouches for the address.
			if err := tools.db.Accounts.VerifyUser(ctx, principal.User.ID); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "user %s\nworkspace %s\n", principal.User.ID, principal.Workspace.ID)
			return nil
		}),
	}
	flags.add(create)
	command := &cobra.Command{Use: "user", Short: "Manage people"}
	command.AddCommand(create, operatorCommand(load))
	return command
}

func workspaceCommand(load func() (settings.Config, error)) *cobra.Command {
	var flags accountFlags
	create := &cobra.Command{
		Use: "create", Short: "Create another workspace of a user", Args: cobra.NoArgs,
		RunE: withTools(load, func(ctx context.Context, command *cobra.Command, tools tools) error {
			user, err := tools.user(ctx, flags.email)
			if err != nil {
				return err
			}
			name, err := tenants.CheckName("workspace", flags.workspace, tenants.MaxWorkspaceName)
			if err != nil {
				return err
			}
			workspace, err := tools.db.Workspaces.CreateWorkspace(ctx, user.ID, name, 0)
			if err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "workspace %s\n", workspace.ID)
			return nil
		}),
	}
	flags.add(create)
	command := &cobra.Command{Use: "workspace", Short: "Manage workspaces"}
	command.AddCommand(create)
	return command
}

func keyCommand(load func() (settings.Config, error)) *cobra.Command {
	var email, workspace, name, scopes string
	var lifetime time.Duration
	create := &cobra.Command{
		Use: "create", Short: "Create an API key and print its secret, once", Args: cobra.NoArgs,
		RunE: withTools(load, func(ctx context.Context, command *cobra.Command, tools tools) error {
			user, err := tools.user(ctx, email)
			if err != nil {
				return err
			}
			in, err := membershipOf(ctx, tools, user.ID, workspace)
			if err != nil {
				return err
			}
			granted, err := tenants.ParseScopes(scopes)
			if err != nil {
				return err
			}
			var expires *time.Time
			if lifetime > 0 {
				at := time.Now().Add(lifetime)
				expires = &at
			}
			_, secret, err := tools.credentials.CreateAPIKey(ctx, in, tenants.APIKey{Name: name, Scopes: granted, CreatedBy: user.ID, APIKeyTimes: tenants.APIKeyTimes{ExpiresAt: expires}})
			if err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), secret)
			return nil
		}),
	}
	create.Flags().StringVar(&email, "email", "", "address of the user who creates it")
	create.Flags().StringVar(&workspace, "workspace", "", "name or id of the workspace; default: the user's first")
	create.Flags().StringVar(&name, "name", "command line", "name of the key")
	create.Flags().StringVar(&scopes, "scopes", string(tenants.ScopeProxy), "scopes, comma-separated")
	create.Flags().DurationVar(&lifetime, "expires-in", 0, "time after which the key expires, such as 720h; default: never")
	_ = create.MarkFlagRequired("email")
	command := &cobra.Command{Use: "key", Short: "Manage API keys"}
	command.AddCommand(create, terminal.KeyShowCommand())
	return command
}

// membershipOf returns the user's workspace with a name or id, or the first one if named is "".
func membershipOf(ctx context.Context, tools tools, user uuid.UUID, named string) (tenants.WorkspaceID, error) {
	memberships, err := tools.db.Workspaces.Memberships(ctx, user)
	if err != nil {
		return tenants.WorkspaceID{}, err
	}
	for _, membership := range memberships {
		if named == "" || membership.Workspace.Name == named || membership.Workspace.ID.String() == named {
			return membership.Workspace.ID, nil
		}
	}
	return tenants.WorkspaceID{}, fmt.Errorf("workspace %q: %w", named, tenants.ErrNotFound)
}

func (f *accountFlags) add(command *cobra.Command) {
	command.Flags().StringVar(&f.email, "email", "", "e-mail address")
	command.Flags().StringVar(&f.workspace, "workspace", "", "name of the workspace")
	_ = command.MarkFlagRequired("email")
	_ = command.MarkFlagRequired("workspace")
}

// operatorCommand makes a user an operator. It needs access to the command line.
func operatorCommand(load func() (settings.Config, error)) *cobra.Command {
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
